// Package model lists the kinds of objects there are. The order is fixed: it is also the order in which they are locked.
package model

import (
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/federation/failure"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/group"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/invitation"
	"github.com/signet-idm/signet/internal/member"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/project"
	"github.com/signet-idm/signet/internal/session"
	"github.com/signet-idm/signet/internal/signing"
	"github.com/signet-idm/signet/internal/user"
	"github.com/signet-idm/signet/internal/webhook"
)

// Kinds of objects.
var Kinds = []event.Definition{installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind, app.Kind, signing.Kind, grant.Kind, webhook.Kind, failure.Kind,
	group.Kind, project.Kind, project.GrantKind, project.AccessKind, invitation.Kind, member.OfferKind}
