// Package model lists the kinds of objects there are. The order is fixed: it is also the order in which they are
// locked.
package model

import (
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// Kinds of objects.
var Kinds = []event.Definition{installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind, app.Kind, signing.Kind,
	oauth.Kind, webhook.Kind, failure.Kind,
	group.Kind, project.Kind, project.GrantKind, project.AccessKind, invitation.Kind, member.OfferKind,
	role.Kind}
