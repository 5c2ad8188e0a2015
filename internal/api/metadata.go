package api

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Metadata implements MetadataService.
type Metadata struct {
	Store event.Store
}

var _ signetv1connect.MetadataServiceHandler = Metadata{}

// metadataChange is what all requests that change metadata have.
type metadataChange interface {
	GetSet() []*signetv1.MetadataPair
	GetRemove() []string
}

// checkMetadata lists what is wrong with a request beyond the field rules of the definition.
func checkMetadata(req proto.Message) []errs.Violation {
	switch r := req.(type) {
	case *signetv1.SetUserMetadataRequest, *signetv1.SetOrganizationMetadataRequest,
		*signetv1.SetApplicationMetadataRequest, *signetv1.SetProjectMetadataRequest:
		c := r.(metadataChange)
		return metadata.Violations(metadataPairs(c.GetSet()), c.GetRemove())
	}
	return nil
}

func metadataPairs(sent []*signetv1.MetadataPair) (all []metadata.Pair) {
	for _, p := range sent {
		all = append(all, metadata.Pair{Key: p.GetKey(), Value: p.GetValue()})
	}
	return all
}

func showMetadata(all map[string]string) (shown []*signetv1.MetadataPair) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		shown = append(shown, &signetv1.MetadataPair{Key: key, Value: all[key]})
	}
	return shown
}

// setMetadata changes the metadata of one kind of object.
func setMetadata[S any](ctx context.Context, s Metadata, of event.Target[S], r metadataChange,
	have func(*S) map[string]string, fact func(metadata.Change) event.Fact[S]) (*signetv1.Details, error) {
	d, err := metadata.Set(ctx, s.Store, of, call.From(ctx).IfMatch, metadataPairs(r.GetSet()),
		r.GetRemove(), have, fact)
	if err != nil {
		return nil, err
	}
	return changed(d), nil
}

// GetUserMetadata reads the metadata of a user of the context organization.
func (s Metadata) GetUserMetadata(ctx context.Context,
	r *signetv1.GetUserMetadataRequest) (*signetv1.GetUserMetadataResponse, error) {
	o, err := user.Within(call.From(ctx).Permit, r.GetUserId()).Read(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetUserMetadataResponse{Details: complete(o.Details()),
		Metadata: showMetadata(o.Data.Metadata)}, nil
}

// SetUserMetadata changes the metadata of a user of the context organization.
func (s Metadata) SetUserMetadata(ctx context.Context,
	r *signetv1.SetUserMetadataRequest) (*signetv1.SetUserMetadataResponse, error) {
	d, err := setMetadata(ctx, s, user.Within(call.From(ctx).Permit, r.GetUserId()), r,
		func(o *user.User) map[string]string { return o.Metadata },
		func(c metadata.Change) event.Fact[user.User] { return user.MetadataSet{Personal: c} })
	if err != nil {
		return nil, err
	}
	return &signetv1.SetUserMetadataResponse{Details: d}, nil
}

// GetOrganizationMetadata reads the metadata of an organization.
func (s Metadata) GetOrganizationMetadata(ctx context.Context,
	_ *signetv1.GetOrganizationMetadataRequest) (*signetv1.GetOrganizationMetadataResponse, error) {
	o, err := org.Of(call.From(ctx).Permit).Read(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetOrganizationMetadataResponse{Details: complete(o.Details()),
		Metadata: showMetadata(o.Data.Metadata)}, nil
}

// SetOrganizationMetadata changes the metadata of an organization.
func (s Metadata) SetOrganizationMetadata(ctx context.Context,
	r *signetv1.SetOrganizationMetadataRequest) (*signetv1.SetOrganizationMetadataResponse, error) {
	d, err := setMetadata(ctx, s, org.Of(call.From(ctx).Permit), r,
		func(o *org.Org) map[string]string { return o.Metadata },
		func(c metadata.Change) event.Fact[org.Org] { return org.MetadataSet{Change: c} })
	if err != nil {
		return nil, err
	}
	return &signetv1.SetOrganizationMetadataResponse{Details: d}, nil
}

// GetApplicationMetadata reads the metadata of an application of the context organization.
func (s Metadata) GetApplicationMetadata(ctx context.Context,
	r *signetv1.GetApplicationMetadataRequest) (*signetv1.GetApplicationMetadataResponse, error) {
	o, err := app.Within(call.From(ctx).Permit, r.GetAppId()).Read(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetApplicationMetadataResponse{Details: complete(o.Details()),
		Metadata: showMetadata(o.Data.Metadata)}, nil
}

// SetApplicationMetadata changes the metadata of an application of the context organization.
func (s Metadata) SetApplicationMetadata(ctx context.Context,
	r *signetv1.SetApplicationMetadataRequest) (*signetv1.SetApplicationMetadataResponse, error) {
	d, err := setMetadata(ctx, s, app.Within(call.From(ctx).Permit, r.GetAppId()), r,
		func(o *app.App) map[string]string { return o.Metadata },
		func(c metadata.Change) event.Fact[app.App] { return app.MetadataSet{Change: c} })
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationMetadataResponse{Details: d}, nil
}

// GetProjectMetadata reads the metadata of a project of the context organization.
func (s Metadata) GetProjectMetadata(ctx context.Context,
	r *signetv1.GetProjectMetadataRequest) (*signetv1.GetProjectMetadataResponse, error) {
	o, err := project.Within(call.From(ctx).Permit, r.GetProjectId()).Read(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetProjectMetadataResponse{Details: complete(o.Details()),
		Metadata: showMetadata(o.Data.Metadata)}, nil
}

// SetProjectMetadata changes the metadata of a project of the context organization.
func (s Metadata) SetProjectMetadata(ctx context.Context,
	r *signetv1.SetProjectMetadataRequest) (*signetv1.SetProjectMetadataResponse, error) {
	d, err := setMetadata(ctx, s, project.Within(call.From(ctx).Permit, r.GetProjectId()), r,
		func(o *project.Project) map[string]string { return o.Metadata },
		func(c metadata.Change) event.Fact[project.Project] { return project.MetadataSet{Change: c} })
	if err != nil {
		return nil, err
	}
	return &signetv1.SetProjectMetadataResponse{Details: d}, nil
}
