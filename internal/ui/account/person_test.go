package account_test

import (
	"html"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/login"
)

func TestTheOwnProfileIsReplaced(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	page := b.open(pages.PathAccount).says(200, "mara@a.test", "mara@mail.test", "not confirmed",
		"Confirm now", "Aldermoor")
	page.press("", "", pages.FieldFirstName, " Mara ", pages.FieldLastName, "Lindqvist", pages.FieldNickName, "M",
		pages.FieldDisplayName, "Mara L.",
		pages.FieldLanguage, "de", pages.FieldGender, "female").leads("/account?done=saved").follow().says(200,
		"Ihre Änderungen", `value="Lindqvist"`)
	if got := w.human(mara).Profile; got != (user.Profile{FirstName: "Mara", LastName: "Lindqvist", NickName: "M",
		DisplayName: "Mara L.", PreferredLanguage: "de", Gender: user.Female}) {
		t.Errorf("got %+v", got)
	}
	b.open(pages.PathAccount).press("", "", pages.FieldNickName, "", pages.FieldLanguage, "", pages.FieldGender,
		"").leads("/account?done=saved")
	if got := w.human(mara).Profile; got.NickName != "" || got.PreferredLanguage != "" || got.Gender != "" {
		t.Errorf("what is left out stays: %+v", got)
	}
	w.change(mara, user.EmailVerified{})
	if page := b.open(pages.PathAccount); strings.Contains(page.text, "Confirm now") ||
		strings.Contains(page.text, "not confirmed") {
		t.Errorf("a proven address is to be proven: %s", page.text)
	}
}

func TestWhatIsWrongWithAProfileStandsNextToItsField(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	most, tooLong := strings.Repeat("ü", 200), strings.Repeat("ü", 201)
	before := w.user(mara)
	for _, c := range []struct{ field, value, says string }{
		{pages.FieldFirstName, "", "Please fill this in."},
		{pages.FieldFirstName, "  ", "Please fill this in."},
		{pages.FieldFirstName, tooLong, "Use at most 200 characters."},
		{pages.FieldLastName, "", "Please fill this in."},
		{pages.FieldLastName, tooLong, "Use at most 200 characters."},
		{pages.FieldDisplayName, "", "Please fill this in."},
		{pages.FieldDisplayName, tooLong, "Use at most 200 characters."},
		{pages.FieldNickName, tooLong, "Use at most 200 characters."},
		{pages.FieldLanguage, "it", "Please check your input."},
		{pages.FieldLanguage, "<script>", "Please check your input."},
		{pages.FieldGender, "other", "Please check your input."},
	} {
		answer := b.open(pages.PathAccount).press("", "", pages.FieldFirstName, "typed", c.field, c.value).
			says(422, `<p class="problem" role="alert" id="`+c.field+`-problem">`+c.says+`</p>`)
		if c.field != pages.FieldFirstName && answer.value(pages.FieldFirstName) != "typed" ||
			c.value == tooLong && answer.value(c.field) != tooLong {
			t.Errorf("%s %q: what was typed is lost", c.field, c.value)
		}
	}
	if now := w.user(mara); now.Sequence != before.Sequence {
		t.Errorf("it was kept: %+v", now.Data.Human.Profile)
	}
	b.open(pages.PathAccount).press("", "", pages.FieldFirstName, most, pages.FieldLastName, most, pages.FieldNickName,
		most, pages.FieldDisplayName, most).leads("/account?done=saved")
	w.change(mara, user.ProfileChanged{Personal: user.ProfileFacts{PreferredLanguage: proto.String("it")}})
	b.open(pages.PathAccount).press("", "").leads("/account?done=saved") // a language that was set elsewhere may stay
}

// The numbers are those of the API's definition.
func TestTheBoundsAreThoseOfTheAPI(t *testing.T) {
	longest := func(m proto.Message, field string) int {
		f := m.ProtoReflect().Descriptor().Fields().ByJSONName(field)
		rules := proto.GetExtension(f.Options().(*descriptorpb.FieldOptions), validate.E_Field).(*validate.FieldRules)
		return int(rules.GetString().GetMaxLen())
	}
	for _, field := range []string{pages.FieldFirstName, pages.FieldLastName, pages.FieldNickName,
		pages.FieldDisplayName} {
		if got := longest(&signetv1.UpdateMyProfileRequest{}, field); got != 200 {
			t.Errorf("%s may have %d characters", field, got)
		}
	}
	if got := longest(&signetv1.CreateMyTokenRequest{}, "name"); got != 200 {
		t.Errorf("the name of a token may have %d characters", got)
	}
	if got := longest(&signetv1.ConfirmMyPasskeyRequest{}, "name"); got != syntax.MaxName {
		t.Errorf("the name of a passkey may have %d characters", got)
	}
	for _, tag := range pages.Languages {
		if len(tag) > longest(&signetv1.UpdateMyProfileRequest{}, pages.FieldLanguage) {
			t.Errorf("the language %s cannot be set", tag)
		}
	}
}

func TestNamesOfPeopleAreText(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	const hostile = `"><script>alert(1)</script>{{.}}`
	page := b.open(pages.PathAccount).press("", "", pages.FieldDisplayName, hostile).follow()
	if page.says(200); page.value(pages.FieldDisplayName) != hostile || strings.Contains(page.text, "<script>") {
		t.Errorf("got %s", page.text)
	}
	b.open(pages.PathAccount).press("", "", pages.FieldDisplayName, hostile, pages.FieldFirstName, "").says(422,
		html.EscapeString(hostile))
}

func TestTwoWindowsDoNotOverwriteEachOther(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	for _, path := range []string{pages.PathAccount} {
		first, second := b.open(path), b.open(path)
		first.press("", "", pages.FieldLanguage, "fr").follow().says(200)
		answer := second.press("", "", pages.FieldLanguage, "es", pages.FieldNickName, "lost").says(422)
		if got := w.human(mara).Profile; got.PreferredLanguage != "fr" || got.NickName != "" {
			t.Errorf("%s: overwritten with %+v", path, got)
		}
		if strings.Contains(answer.text, "lost") || answer.value(pages.FieldLanguage) != "fr" {
			t.Errorf("%s: what is there now is not shown: %s", path, answer.text)
		}
		answer.press("", "", pages.FieldLanguage, "").follow().says(200)
		for _, nothing := range []string{"", "0", "-1", "x", "99999999999999999999"} {
			b.open(path).press("", "", pages.FieldSequence, nothing, pages.FieldLanguage, "es").says(422,
				"This was changed elsewhere")
		}
		if got := w.human(mara).Profile.PreferredLanguage; got != "" {
			t.Errorf("%s: who has seen nothing sets %s", path, got)
		}
	}
	// What is wrong with a field does not let a form forget what it has seen.
	stale := b.open(pages.PathAccount)
	w.change(mara, user.ProfileChanged{Personal: user.ProfileFacts{NickName: proto.String("N")}})
	stale.press("", "", pages.FieldFirstName, "").says(422).press("", "", pages.FieldFirstName, "F").says(422,
		"This was changed elsewhere")
}

func TestTheLanguageIsSetInOnePlace(t *testing.T) {
	w := newSite(t)
	b := w.in("mara")
	b.open(pages.PathAccount).press("", "", pages.FieldLanguage, "fr").follow().says(200, `<html lang="fr">`)
	b.open(pages.PathAccount).press("", "", pages.FieldLanguage, "xx").says(422)
	b.open(pages.PathAccount).press("", "", pages.FieldLanguage, "").follow().says(200, `<html lang="en">`)
	w.change(mara, user.ProfileChanged{Personal: user.ProfileFacts{PreferredLanguage: proto.String("sv")}})
	b.open(pages.PathAccount).says(200, "Other: “sv”")
}

func TestTheOwnPasswordIsChanged(t *testing.T) {
	w := newSite(t)
	w.policy(policy.Policy{PasswordMinLength: 10, CommonPasswordsRefused: true})
	b, elsewhere := w.in("mara"), w.in("mara")
	page := b.open(pages.PathPassword).says(200, "At least 10 characters.", "No common passwords.")
	for _, c := range []struct{ current, chosen, repeated, field, says string }{
		{"", "another horse", "another horse", pages.FieldCurrentPassword, "Please fill this in."},
		{pass, "", "", pages.FieldNewPassword, "Please fill this in."},
		{pass, "short", "short", pages.FieldNewPassword, "Use at least 10 characters."},
		{pass, strings.Repeat("x", 73), strings.Repeat("x", 73), pages.FieldNewPassword, "Use at most 72 characters."},
		{pass, "1234567890", "1234567890", pages.FieldNewPassword, "This password is very common"},
		{pass, "another horse", "another hors", pages.FieldRepeatPassword, "The two passwords do not match."},
		{pass, pass, pass, pages.FieldNewPassword, "Choose a password that is different"},
		{"wrong", "another horse", "another horse", pages.FieldCurrentPassword, "That is not your current password."},
	} {
		answer := page.press("", "", pages.FieldCurrentPassword, c.current, pages.FieldNewPassword, c.chosen,
			pages.FieldRepeatPassword, c.repeated).
			says(422, `id="`+c.field+`-problem">`+c.says)
		if strings.Contains(answer.text, "another hors") {
			t.Error("a password is shown")
		}
	}
	if w.user(mara).Data.Password.Version != 1 {
		t.Fatal("it was changed")
	}
	page.press("", "", pages.FieldCurrentPassword, pass, pages.FieldNewPassword, "another horse",
		pages.FieldRepeatPassword, "another horse").
		leads("/account/password?done=password").follow().says(200, "Your password has been changed.")
	elsewhere.get(pages.PathAccount).leads(wish(pages.PathAccount))
	b.post(login.Path+"?other=1",
		map[string][]string{pages.FieldLoginName: {"mara"}, pages.FieldPassword: {pass}}).says(422)
}

func TestGuessingTheCurrentPasswordIsSlowedDown(t *testing.T) {
	w := newSite(t)
	w.policy(policy.Policy{NetworkAttempts: 2})
	page := w.in("mara").open(pages.PathPassword)
	var answer *shown
	for range 4 {
		answer = page.press("", "", pages.FieldCurrentPassword, "guess", pages.FieldNewPassword, "another horse",
			pages.FieldRepeatPassword, "another horse")
	}
	answer.says(422, "Too many attempts.")
}
