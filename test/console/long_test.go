package console

import (
	"strings"
)

// Names as long as the API takes them, made of words that people have. None has room for itself in a column.
const (
	longName = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft von Wittgenstein-Hohenlohe-" +
		"Schillingsfürst und Partner, Internationale Verwaltungsgesellschaft Nordrhein-Westfalen mbH & Co."
	longPerson  = "Maximiliane Katharina Freifrau von Wittgenstein-Hohenlohe-Schillingsfürst"
	rightToLeft = "عبد الرحمن بن محمد بن خلدون الحضرمي الإشبيلي التونسي"
	longLogin   = "maximiliane.katharina.freifrau.von.wittgenstein-hohenlohe-schillingsfuerst"
	longMail    = "maximiliane.katharina.freifrau.von-wittgenstein-hohenlohe-schill@verwaltungsgesellschaft-nordrhein-westfalen.example"
	longHost    = "https://anmeldung.verwaltungsgesellschaft-nordrhein-westfalen.example"
)

// fillLong adds an organization whose objects have long names of many kinds, and at least one of each kind.
func (s *installation) fillLong() *objects {
	s.t.Helper()
	name := longName
	for len([]rune(name)) < 200 {
		name += " Holding"
	}
	name = strings.TrimSpace(string([]rune(name)[:200]))
	org := s.newOrganization(name)
	o := s.fill(org, name)
	id := func(answer map[string]any, field string) string { return answer[field].(string) }
	person := func(userName, first, last, email string) string {
		return id(s.in(org, "POST", "/v1/users/human", map[string]any{
			"userName": userName, "password": password, "noChangeRequired": true,
			"profile": map[string]any{"firstName": first, "lastName": last, "nickName": last},
			"email":   map[string]any{"email": email},
			"phone":   map[string]any{"phone": "+4915123456789012"},
		}), "userId")
	}
	people := []string{
		person(longLogin, longPerson, longPerson, longMail),
		person("abd-ar-rahman", rightToLeft, rightToLeft, "abd-ar-rahman@mail.test"),
		person("wide", strings.Repeat("Ｗ", 200), strings.Repeat("ש", 200), strings.Repeat("w", 64)+"@"+strings.Repeat("w", 60)+".test"),
		person("jo", "Jo", "Administrator", "jo.administrator@localhost.test"),
	}
	for _, user := range people {
		s.rest("PUT", "/v1/orgs/"+org+"/members/"+user, map[string]any{"roles": []string{"ORG_OWNER", "ORG_USER_MANAGER"}})
		s.in(org, "PUT", "/v1/groups/"+o.group+"/members/"+user, map[string]any{})
		s.in(org, "PUT", "/v1/users/"+user+"/app_roles/"+o.project, map[string]any{"roleKeys": []string{"reader"}})
	}
	o.user = people[0]
	s.rest("PUT", "/v1/members/"+o.user, map[string]any{"roles": []string{"IAM_OWNER_VIEWER", "IAM_SUPPORT"}})
	service := id(s.in(org, "POST", "/v1/users/service",
		map[string]any{"userName": "robot." + longLogin, "name": longPerson, "description": name}), "userId")
	s.in(org, "POST", "/v1/users/"+service+"/tokens", map[string]any{"name": name})
	s.in(org, "POST", "/v1/users/"+service+"/secret", map[string]any{})
	o.more = append(o.more, view{"service user", "/o/" + org + "/users/" + service},
		view{"service user's sign-in", "/o/" + org + "/users/" + service + "/sign-in"},
		view{"form of a custom role", "/o/" + org + "/roles?add=role"})

	address := longHost + "/oauth/callback/of/the/application/" + strings.Repeat("segment-with-words/", 8)
	s.in(org, "PUT", "/v1/projects/"+o.project+"/roles/"+"administrator-of-"+strings.Repeat("permissions-", 3),
		map[string]any{"name": longPerson, "description": name})
	for _, kind := range []string{"SINGLE_PAGE", "NATIVE", "API"} {
		body := map[string]any{"name": longPerson + " " + kind, "type": "APPLICATION_TYPE_" + kind}
		if kind != "API" {
			body["redirectUris"] = []string{address, address + "2"}
		}
		s.in(org, "POST", "/v1/apps", body)
	}
	o.app = id(s.in(org, "POST", "/v1/apps", map[string]any{"name": name, "type": "APPLICATION_TYPE_WEB",
		"redirectUris": []string{address, address + "2"}, "postLogoutUris": []string{address},
		"backChannelLogoutUri": address, "initiateLoginUri": address}), "appId")
	s.in(org, "POST", "/v1/apps/"+o.app+"/secret", map[string]any{})
	s.in(org, "PUT", "/v1/apps/"+o.app+"/metadata",
		map[string]any{"set": []map[string]string{{"key": strings.Repeat("long-key-", 10), "value": name}}})
	s.in(org, "PUT", "/v1/projects/"+o.project+"/metadata",
		map[string]any{"set": []map[string]string{{"key": strings.Repeat("long-key-", 10), "value": name}}})
	s.in(org, "PUT", "/v1/users/"+o.user+"/metadata",
		map[string]any{"set": []map[string]string{{"key": strings.Repeat("long-key-", 10), "value": name}}})
	s.in(org, "PUT", "/v1/users/"+o.user+"/app_roles/"+o.project, map[string]any{"roleKeys": []string{"reader"}})
	s.in(org, "PUT", "/v1/groups/"+o.group+"/roles", map[string]any{"roles": []string{"ORG_AUDITOR", "ORG_SETTINGS_MANAGER"}})
	s.in(org, "PUT", "/v1/groups/"+o.group+"/app_roles/"+o.project, map[string]any{"roleKeys": []string{"reader"}})
	s.in(org, "POST", "/v1/groups", map[string]any{"name": rightToLeft, "description": rightToLeft})
	s.in(org, "POST", "/v1/idps/oidc", map[string]any{"name": longPerson, "issuer": longHost + "/realms/customers-and-partners",
		"clientId": strings.Repeat("client-", 20), "clientSecret": "secret", "scopes": []string{"openid", "profile", "email"}})
	s.in(org, "POST", "/v1/orgs/"+org+"/domains", map[string]any{"domain": "verwaltungsgesellschaft-nordrhein-westfalen.example"})
	s.in(org, "POST", "/v1/orgs/"+org+"/domains", map[string]any{"domain": strings.Repeat("d", 63) + "." +
		strings.Repeat("e", 63) + ".example"})
	o.webhook = id(s.in(org, "POST", "/v1/webhooks", map[string]any{"name": name, "url": address,
		"types": []string{"user.human_added.v1", "user.email_restored.v1"}}), "webhookId")
	s.in(org, "POST", "/v1/orgs/"+org+"/roles", map[string]any{"name": longPerson, "description": name,
		"permissions": []string{"user.read", "user.write", "app.read", "event.read", "group.read", "group.write"}})
	s.rest("POST", "/v1/installation_roles", map[string]any{"name": longPerson, "description": name,
		"permissions": []string{"user.read", "user.write", "app.read", "org.read"}})
	s.rest("POST", "/v1/orgs/"+org+"/invitations", map[string]any{"email": longMail, "roles": []string{"ORG_USER_MANAGER"},
		"groupIds": []string{o.group}, "appId": o.app, "appRoles": []map[string]any{{"projectId": o.project,
			"roleKeys": []string{"reader"}}}})
	return o
}
