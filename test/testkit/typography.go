package testkit

import (
	"regexp"
	"strings"
)

// typography is what a text must not hold, in every language (the empty one) and in one.
var typography = map[string]map[string]*regexp.Regexp{
	"": {
		"has blanks at its ends or in a row": regexp.MustCompile(`^\s|\s$|\s\s`),
		"has straight quotes":                regexp.MustCompile(`["']`),
		"has three dots":                     regexp.MustCompile(`\.\.`),
		"has a blank before a mark":          regexp.MustCompile(`[\s\x{a0}\x{202f}][,.)]|[( ]\s`),
	},
	"en": {"has quotes of another language": regexp.MustCompile(`[„«»]`),
		"has a blank before a mark": regexp.MustCompile(`[\s\x{a0}\x{202f}][;:!?]`)},
	"de": {"has quotes of another language": regexp.MustCompile(`[”«»]`),
		"has a blank before a mark": regexp.MustCompile(`[\s\x{a0}\x{202f}][;:!?]`)},
	"es": {"has quotes of another language": regexp.MustCompile(`[„“”]`),
		"has a blank before a mark": regexp.MustCompile(`[\s\x{a0}\x{202f}][;:!?]`)},
	"fr": {
		"has quotes of another language":            regexp.MustCompile(`[„“”]`),
		"lacks a narrow no-break space at its mark": regexp.MustCompile(`[^\x{202f}]([;!?»]|:(\s|$))|«[^\x{202f}]`),
	},
}

// pairs are marks that come in twos.
var pairs = map[string][][2]string{"en": {{"“", "”"}}, "de": {{"„", "“"}}, "fr": {{"«", "»"}},
	"es": {{"«", "»"}, {"¿", "?"}, {"¡", "!"}}}

// TypographyFaults says what is wrong with the spaces, quotes and marks of a text in a language.
func TypographyFaults(language, text string) []string {
	var faults []string
	for _, rules := range []map[string]*regexp.Regexp{typography[""], typography[language]} {
		for fault, wrong := range rules {
			if wrong.MatchString(text) {
				faults = append(faults, fault)
			}
		}
	}
	for _, p := range pairs[language] {
		if strings.Count(text, p[0]) != strings.Count(text, p[1]) {
			faults = append(faults, "does not have "+p[0]+" and "+p[1]+" in pairs")
		}
	}
	return faults
}
