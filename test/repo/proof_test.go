package repo

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// withoutProof are the operations that change something about their caller, or about a user that can be the caller, but
// not how that person signs in. A leaked token, or an application, can do them. Whoever adds to it has thought of that.
var withoutProof = map[string]string{
	"UpdateMyProfile":          "names and language sign nobody in",
	"UpdateUserProfile":        "likewise",
	"UpdateServiceUser":        "services have no sign-in of their own",
	"RevokeMyToken":            "ends access",
	"RevokeUserToken":          "ends access",
	"RemoveServiceSecret":      "ends access",
	"RemoveServiceKey":         "ends access",
	"EndSession":               "ends access",
	"EndMySessions":            "ends access",
	"EndUserSession":           "ends access",
	"EndUserSessions":          "ends access",
	"EndMyRememberedDevice":    "asks for more",
	"EndUserRememberedDevice":  "asks for more",
	"DeactivateUser":           "ends access",
	"ReactivateUser":           "who is switched off calls nothing",
	"LockUser":                 "ends access",
	"UnlockUser":               "who is locked calls nothing",
	"RemoveUser":               "ends access",
	"SetOrganizationMember":    "roles sign nobody in",
	"RemoveOrganizationMember": "ends access",
	"AcceptServiceUserOffer":   "roles sign nobody in",
	"DeclineServiceUserOffer":  "likewise",
	"AddGroupMember":           "roles sign nobody in",
	"RemoveGroupMember":        "ends access",
	"SetUserAppRoles":          "roles sign nobody in",
	"SetUserMetadata":          "metadata signs nobody in",
	"SetInstallationMember":    "roles sign nobody in",
	"RemoveInstallationMember": "ends access",
	"SendPasswordReset":        "the mail is for who reads it, and everybody can ask for one",
	"SendEmailVerification":    "likewise",
	"RequestUserFactorRemoval": "others decide",
	"ClearSignInThrottle":      "guesses cost as much time as at first, three times a day",

	"RemoveServiceWorkloadRule": "ends access",
}

func TestWhatChangesTheOwnSignInAsksForAProof(t *testing.T) {
	left := maps.Clone(withoutProof)
	asking := 0
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		binding, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
		aboutCaller := rule.GetAuthenticated() && rule.GetScope() == signetv1.Scope_SCOPE_SELF
		aboutUser := !rule.GetPublic() && m.Input().Fields().ByName("user_id") != nil
		name := string(m.Name())
		_, listed := withoutProof[name]
		delete(left, name)
		asks := rule.GetProof() != signetv1.Proof_PROOF_UNSPECIFIED
		switch {
		case asks:
			asking++
			if listed {
				t.Error("it asks for a proof, and is listed as one that does not")
			}
		case strings.HasPrefix(pathOf(binding), "GET ") || !aboutCaller && !aboutUser:
			if listed {
				t.Error("it changes nobody: take it from the list")
			}
		case !listed:
			t.Error("with it people can change something about themselves: let its rule ask for a proof, or list it here with the reason why a leaked token may do it")
		}
	})
	if asking < 25 {
		t.Errorf("only %d operations ask for a proof", asking)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("%s is not an operation", name)
	}
}
