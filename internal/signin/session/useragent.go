package session

import "strings"

// browsers and systems are what user agents call themselves, in the order in which to look: most say to be others, too.
var (
	browsers = []struct{ mark, name string }{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chromium/", "Chromium"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
		{"curl/", "curl"},
	}
	systems = []struct{ mark, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"},
		{"Mac OS X", "macOS"}, {"Linux", "Linux"},
	}
)

// browserName puts a user agent in a few words of ours; empty where it is not known.
func browserName(userAgent string) string {
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
