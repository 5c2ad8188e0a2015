package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

type (
	importRequest = signetv1.ImportUsersRequest
	importAnswer  = signetv1.ImportUsersResponse
	importPerson  = signetv1.ImportUsersRequest_User
)

const (
	together = signetv1.ImportMode_IMPORT_MODE_ATOMIC
	eachOne  = signetv1.ImportMode_IMPORT_MODE_PER_ITEM

	horse       = "correct horse"
	horseBcrypt = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
)

func imported(name string) *importPerson {
	return &importPerson{
		UserName: name,
		Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace"},
		Email:    &signetv1.ImportUsersRequest_User_Email{Address: unique("mail") + "@mail.example"},
	}
}

// many gives so many people with names that begin alike.
func many(n int) (people []*importPerson, prefix string) {
	prefix = unique("many")
	for i := range n {
		people = append(people, imported(fmt.Sprintf("%s%04d", prefix, i)))
	}
	return people, prefix
}

// importTogetherStory: all are imported, as sent, or none.
func importTogetherStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, userManager)
	full := imported(unique("Ada"))
	full.Reference = "row 17"
	full.Profile = &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace",
		NickName: "Countess", DisplayName: "Ada L.", PreferredLanguage: "en-GB", Gender: signetv1.Gender_GENDER_FEMALE}
	full.Email.Verified = true
	full.Phone = &signetv1.ImportUsersRequest_User_Phone{Number: "+44-20-1234", Verified: true}
	full.PasswordHash, full.PasswordChangeRequired = horseBcrypt, true
	bare := imported(unique("bare"))
	bare.PasswordChangeRequired = true // there is nothing to change
	answer := done[*importAnswer](t, c, as, &importRequest{Users: []*importPerson{full, bare}})
	same(t, "answers", fmt.Sprint(len(answer.GetResults()), answer.GetImported(), answer.GetRefused()), "2 2 0")
	one, two := answer.GetResults()[0], answer.GetResults()[1]
	same(t, "reference", one.GetReference()+two.GetReference(), "row 17")
	got := c.user(t, as, one.GetUserId())
	sameMessage(t, "as read back", got, &signetv1.User{
		UserId:     one.GetUserId(),
		State:      signetv1.User_STATE_ACTIVE,
		UserName:   full.UserName,
		LoginNames: []string{full.UserName + "@" + s.domain},
		Details:    one.GetDetails(),
		Type: &signetv1.User_Human_{
			Human: &signetv1.User_Human{
				Profile: &signetv1.User_Profile{FirstName: "Ada", LastName: "Lovelace", NickName: "Countess",
					DisplayName: "Ada L.", PreferredLanguage: "en-GB", Gender: signetv1.Gender_GENDER_FEMALE},
				Email: full.Email.Address, IsEmailVerified: true, Phone: "+44-20-1234", IsPhoneVerified: true,
				PasswordChangeRequired: true},
		},
	})
	same(t, "owner", one.GetDetails().GetResourceOwner(), s.org)
	in := c.session(t, &Actor{UserID: one.GetUserId(), OrgID: s.org, LoginName: full.UserName + "@" + s.domain,
		Password: horse})
	same(t, "has to change the password", in.MustChange, true)
	c.refused(t, permissionDenied, s.user, &importRequest{Users: []*importPerson{imported("no")}}) // holds nothing
	got = c.user(t, as, two.GetUserId())
	same(t, "display name", got.GetHuman().GetProfile().GetDisplayName(), "Ada Lovelace")
	same(t, "nothing to change", got.GetHuman().GetPasswordChangeRequired(), false)
	same(t, "verified", got.GetHuman().GetIsEmailVerified(), false)
	c.refused(t, signInFailed, nil, signIn(bare.UserName+"@"+s.domain, horse))

	// What is wrong with any of them is said at once, to those who may somewhere, and nobody is there afterwards.
	prefix := unique("none")
	wrong := imported(prefix + "1")
	wrong.Email.Address, wrong.Phone, wrong.PasswordHash = "Ada <a@b>",
		&signetv1.ImportUsersRequest_User_Phone{Number: "1"}, "$2b$31"+horseBcrypt[6:]
	worse := imported(wide(201))
	worse.Profile, worse.Reference = &signetv1.SetupOrganizationRequest_Human_Profile{LastName: wide(201),
		Gender: 9}, wide(201)
	req := &importRequest{Mode: together, Users: []*importPerson{imported(prefix), wrong, {}, worse}}
	bad := invalid("users[1].email.address", "users[1].phone.number", "users[1].passwordHash",
		"users[2].userName", "users[2].profile", "users[2].email",
		"users[3].userName", "users[3].profile.firstName", "users[3].profile.lastName", "users[3].profile.gender",
		"users[3].reference")
	c.refused(t, bad, as, req)
	c.refused(t, permissionDenied, s.user, req)
	// Names that are taken: by others, by one of the request, whatever the case.
	req = &importRequest{Mode: together,
		Users: []*importPerson{imported(prefix), imported(strings.ToUpper(full.UserName)),
			imported(strings.ToUpper(prefix))}}
	if a := c.refused(t, userNameTaken, as, req); !strings.HasSuffix(a.status.GetMessage(),
		"choose others for users[1], users[2]") {
		t.Errorf("it says %s", a.status.GetMessage())
	}
	same(t, "nobody is there", fmt.Sprint(c.listedUsers(t, as, &signetv1.ListUsersRequest{UserName: prefix})), "[]")
	c.refused(t, invalid("users"), as, &importRequest{})
	c.refused(t, invalid("mode"), as, &importRequest{Mode: 9, Users: []*importPerson{imported(prefix)}})
}

// importEachStory: each is imported or refused alone, and the answers are in the order of the request.
func importEachStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, userManager)
	people, prefix := many(250) // more than one part
	before := imported(people[100].UserName)
	done[*importAnswer](t, c, as, &importRequest{Users: []*importPerson{before}})
	reason := map[int]string{3: "INVALID_REQUEST", 100: "USER_NAME_TAKEN", 101: "USER_NAME_TAKEN",
		200: "INVALID_REQUEST", 249: "USER_NAME_TAKEN"}
	people[3].Email.Address, people[3].PasswordHash = "nobody", "not a hash that anybody should see again"
	people[101].UserName = strings.ToUpper(people[99].UserName) // of the part before
	people[200] = &importPerson{Reference: "200"}
	people[249].UserName = people[248].UserName
	for i, p := range people {
		p.Reference = fmt.Sprint(i)
	}
	answer := done[*importAnswer](t, c, as, &importRequest{Mode: eachOne, Users: people})
	same(t, "counts", fmt.Sprint(answer.GetImported(), answer.GetRefused()), "245 5")
	for i, r := range answer.GetResults() {
		same(t, "reference", r.GetReference(), fmt.Sprint(i))
		same(t, "reason of "+r.GetReference(), r.GetError().GetReason(), reason[i])
		if (r.GetUserId() == "") != (reason[i] != "") || (r.GetDetails() == nil) != (reason[i] != "") ||
			(r.GetError().GetMessage() == "") != (reason[i] == "") {
			t.Errorf("%d: %v", i, r)
		}
	}
	fields := func(i int) (all []string) {
		for _, v := range answer.GetResults()[i].GetError().GetFieldViolations() {
			all = append(all, v.GetField())
			if v.GetDescription() == "" || strings.Contains(v.GetDescription(), "anybody") {
				t.Errorf("%d: %v", i, v)
			}
		}
		slices.Sort(all)
		return all
	}
	same(t, "fields", fmt.Sprint(fields(3), fields(100), fields(200)),
		"[email.address passwordHash] [] [email profile userName]")
	same(t, "listed", len(c.listedUsers(t, as, &signetv1.ListUsersRequest{UserName: prefix, PageSize: 500})), 246)
	// Whoever is refused does not keep a name: the next one gets it.
	first, second := imported(unique("name")), imported("")
	second.UserName, first.Email.Address = first.UserName, "nobody"
	answer = done[*importAnswer](t, c, as, &importRequest{Mode: eachOne, Users: []*importPerson{first, second}})
	same(t, "the second one", answer.GetResults()[1].GetUserId() != "", true)
	// Nobody may who may not.
	c.refused(t, permissionDenied, s.user, &importRequest{Mode: eachOne, Users: []*importPerson{{}}})
	c.refused(t, permissionDenied, as, &importRequest{Mode: eachOne, Users: people}, header(orgID, c.w.there.org))
}

// importAgainStory: a key gives the first answer again, of every part, and nobody is there twice.
func importAgainStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, userManager)
	for _, mode := range []signetv1.ImportMode{together, eachOne} {
		k := key(unique("key"))
		people, prefix := many(130)
		if mode == eachOne {
			people[7].UserName = people[6].UserName
			people[120].Email = nil
		}
		req := &importRequest{Mode: mode, Users: people}
		first := done[*importAnswer](t, c, as, req, k)
		sameMessage(t, "again", done[*importAnswer](t, c, as, req, k), first)
		same(t, "listed", len(c.listedUsers(t, as, &signetv1.ListUsersRequest{UserName: prefix, PageSize: 500})),
			int(first.GetImported()))
		c.refused(t, keyReused, as, &importRequest{Mode: mode, Users: people[:129]}, k)
		c.refused(t, permissionDenied, s.user, req, k)
	}
}

// importSize: an import may have four times as much as other requests, on every way in, and no more.
func importSize(t *testing.T, w *World) {
	s := w.scene(t)
	const most = 4 << 20
	tooLarge := refused(codes.ResourceExhausted, "BODY_TOO_LARGE")
	body := `{"users":[{}]}`
	empty := invalid("users[0].userName", "users[0].profile", "users[0].email")
	w.raw(t, "POST", "/v1/users/_import", s.owner, nil, body+strings.Repeat(" ", most-len(body))).mustBe(t, empty)
	a := w.raw(t, "POST", "/v1/users/_import", s.owner, nil, body+strings.Repeat(" ", most-len(body)+1))
	a.mustBe(t, tooLarge)
	same(t, "status", a.http, 413)
	if !strings.Contains(a.status.GetMessage(), "4194304") {
		t.Errorf("it does not say how much is accepted: %s", a.status.GetMessage())
	}
	fits := func(size int) *importRequest {
		req := &importRequest{Users: []*importPerson{{UserName: strings.Repeat("x", size-16)}}}
		for n := size - 16; n < size; n++ {
			req.Users[0].UserName += "x"
		}
		return req
	}
	for _, wire := range w.wires[1:] {
		c := &Client{w, wire}
		c.refused(t, tooLarge, s.owner, fits(most))
		c.refused(t, empty, s.owner, fits(most-100))
	}
	// A thousand, and not one more.
	people, prefix := many(1001)
	c := &Client{w, w.grpc}
	for _, wire := range w.wires {
		(&Client{w, wire}).refused(t, invalid("users"), s.owner, &importRequest{Users: people})
	}
	same(t, "imported", done[*importAnswer](t, c, s.owner, &importRequest{Users: people[:1000]}).GetImported(), 1000)
	same(t, "listed", len(c.listedUsers(t, s.owner, &signetv1.ListUsersRequest{UserName: prefix, PageSize: 500})), 1000)
	// The smallest users there are would take a hundred times their size in memory: nobody decodes more than may be
	// there.
	w.raw(t, "POST", "/v1/users/_import", s.owner, nil, `{"users":[{}`+strings.Repeat(",{}", 1_000_000)+`]}`).mustBe(t,
		invalid("users"))
	crowd := &importRequest{Users: slices.Repeat([]*importPerson{{}}, 1_000_000)}
	for _, wire := range w.wires[1:] {
		(&Client{w, wire}).refused(t, invalid("users"), s.owner, crowd)
	}
}

// importedHashes: whoever comes with the hash of another system signs in with the password, and has one of ours
// afterwards.
func importedHashes(t *testing.T, w *World) {
	// as the program has it
	w = openWorld(t, testdb.New(t, w.db.Engine), func(c *server.Config) { c.Hasher = secret.NewHasher(0, 0) })
	s := w.scene(t)
	c := &Client{w, w.rest}
	for name, hash := range map[string]string{
		"argon2id of a lower cost": "$argon2id$v=19$m=64,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$dPtrHTEawLtMiR9+/XloAkXZ+EtyrY+bvmHIbiufhk0",
		"bcrypt":                   horseBcrypt,
		"bcrypt of PHP":            "$2y" + horseBcrypt[3:],
		"scrypt":                   "$scrypt$ln=4,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$OAkZqUBelG6VIYdTJfYSENL5OmZRxMa3GwXn5oFliTg",
		"PBKDF2 with SHA-1":        "$pbkdf2$1000$MDEyMzQ1Njc4OWFiY2RlZg$aUfE2vx5Q7zgbb0jx49AaNpXUQQ",
		"PBKDF2 with SHA-256":      "$pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg$cBg8D2DungRB9k76szThf5ehfyBz991ay6PT8Srwk4M",
	} {
		p := imported(unique("hash"))
		p.PasswordHash = hash
		id := done[*importAnswer](t, c, s.owner,
			&importRequest{Mode: eachOne, Users: []*importPerson{p}}).GetResults()[0].GetUserId()
		stored := func() []byte {
			row, err := w.server.Store().Row(t.Context(), user.PasswordRow(id))
			if err != nil || row == nil {
				t.Fatalf("%s: %v", name, err)
			}
			return row.Value
		}
		same(t, name, string(stored()), hash)
		c.refused(t, signInFailed, nil, signIn(p.UserName+"@"+s.domain, horse+"s"))
		same(t, name+" after a wrong password", string(stored()), hash)
		actor := &Actor{UserID: id, OrgID: s.org, LoginName: p.UserName + "@" + s.domain, Password: horse}
		same(t, "must change", c.session(t, actor).MustChange, false)
		if !bytes.HasPrefix(stored(), []byte("$argon2id$v=19$m=19456,t=2,p=1$")) {
			t.Errorf("%s: the hash is still the old one", name)
		}
		c.session(t, actor)
		if digest := hash[strings.LastIndex(hash, "$"):]; digest != "" {
			w.hide(digest)
		}
	}
}
