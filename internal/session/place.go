package session

import "strings"

// A session is called by where it was opened, for its owner to recognise it: the address, a space, and the browser, as far as
// they are known. That is personal, so it stands with the session only, and goes with it.

// browsers and systems are what user agents call themselves, in the order in which to look: most say to be others, too.
var (
	browsers = []struct{ mark, name string }{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chromium/", "Chromium"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	}
	systems = []struct{ mark, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	}
)

// name is what a session from this place is called.
func (p Place) name() string {
	return strings.TrimRight(p.Address+" "+browserOf(p.UserAgent), " ")
}

// browserOf puts a user agent in a few words of ours; empty where it is not known.
func browserOf(userAgent string) string {
	find := func(in []struct{ mark, name string }) string {
		for _, one := range in {
			if strings.Contains(userAgent, one.mark) {
				return one.name
			}
		}
		return ""
	}
	browser, system := find(browsers), find(systems)
	if browser == "" || system == "" {
		return browser + system
	}
	return browser + " (" + system + ")"
}

// Place tells where a session was opened; empty where that is not known.
func (s Shown) Place() (address, browser string) {
	address, browser, _ = strings.Cut(s.Name, " ")
	return address, browser
}
