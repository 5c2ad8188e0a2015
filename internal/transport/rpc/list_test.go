package rpc

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/strict"
)

// TestListsAreNotDecodedBeyondTheirLimit: an empty element has two bytes on the wire and a hundred times that in
// memory.
func TestListsAreNotDecodedBeyondTheirLimit(t *testing.T) {
	const many = 1_000_000
	l := newLab(t)
	for name, c := range map[string]struct {
		path, contentType string
		body              []byte
	}{
		"REST": {"/v1/users/_import", "application/json",
			[]byte(`{"users":[{}` + strings.Repeat(`,{}`, many) + `]}`)},
		"gRPC": {"/signet.v1.UserService/ImportUsers", "application/grpc",
			frameOf(0, bytes.Repeat([]byte{0x12, 0}, many))},
		"gRPC-Web": {"/signet.v1.UserService/ImportUsers", "application/grpc-web+proto",
			frameOf(0, bytes.Repeat([]byte{0x12, 0}, many))},
	} {
		r, err := http.NewRequest("POST", "http://localhost"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = bearerOf("owner", "content-type", c.contentType)
		r.RemoteAddr = "127.0.0.1:1234"
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.site.ServeHTTP(&sink{h: http.Header{}}, r)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 40 {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
	var req signetv1.ImportUsersRequest
	for n, want := range map[int]bool{1000: true, 1001: false} {
		body := `{"users":[{}` + strings.Repeat(`,{}`, n-1) + `]}`
		found, complete := strict.UnmarshalJSON([]byte(body), &req)
		if complete != want || len(req.GetUsers()) > 1000 ||
			!want && (len(found) != 1 || found[0].Field != "users" ||
				found[0].Message != "must have at most 1000 elements") {
			t.Errorf("%d elements: %v, %d are read", n, found, len(req.GetUsers()))
		}
	}
}

// Lists are not decoded beyond their limit wherever they are and whatever they hold: every element is looked at.
func TestLongListsAreRefusedUnread(t *testing.T) {
	most := func(n int) []errs.Violation { return []errs.Violation{{Message: strict.TooManyElements(n)}} }
	roles := func(n int) []string { return slices.Repeat([]string{"a"}, n) }
	for name, c := range map[string]struct {
		message proto.Message
		field   string
		most    int // 0: it is fine
	}{
		"of texts":                      {&signetv1.SetOrganizationMemberRequest{Roles: roles(1001)}, "roles", 1000},
		"as long as it may be":          {&signetv1.SetOrganizationMemberRequest{Roles: roles(20)}, "", 0},
		"without a rule of its own":     {&signetv1.SetupOrganizationRequest{Roles: roles(1001)}, "roles", 1000},
		"in a message":                  {&signetv1.ModifyIdentityProviderRequest{Oidc: &signetv1.ModifyIdentityProviderRequest_OIDC{Scopes: roles(10_001)}}, "oidc.scopes", 0},
		"of numbers, which are packed":  {&signetv1.AddApplicationRequest{GrantTypes: slices.Repeat([]signetv1.GrantType{1}, 1001)}, "grantTypes", 1000},
		"of numbers, as many as may be": {&signetv1.AddApplicationRequest{GrantTypes: slices.Repeat([]signetv1.GrantType{1}, 3)}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := proto.Marshal(c.message)
			if err != nil {
				t.Fatal(err)
			}
			want := most(c.most)
			if want[0].Field = c.field; c.field == "" {
				want = nil
			}
			got, _ := strict.NewProto(c.message.ProtoReflect().Descriptor()).Unmarshal(raw,
				c.message.ProtoReflect().New().Interface(), nil)
			if c.field == "oidc.scopes" { // its limit is that of the definition
				want[0].Message = got[0].Message
			}
			if !slices.Equal(got, want) {
				t.Errorf("over gRPC: %v, want %v", got, want)
			}
			body, err := strict.MarshalJSON(c.message)
			if err != nil {
				t.Fatal(err)
			}
			found, _ := strict.UnmarshalJSON(body, c.message.ProtoReflect().New().Interface())
			if !slices.Equal(found, want) {
				t.Errorf("as JSON: %v, want %v", found, want)
			}
		})
	}
}
