package packing

import (
	"net/http"
	"testing"
)

func TestTheCodingOfAnAnswer(t *testing.T) {
	for accept, want := range map[string]struct{ both, gzip string }{
		"":                                  {"", ""},
		"gzip":                              {"gzip", "gzip"},
		"GZIP":                              {"gzip", "gzip"},
		"br":                                {"br", ""},
		"gzip, deflate, br, zstd":           {"br", "gzip"},
		"br, gzip":                          {"br", "gzip"},
		"br;q=0.5, gzip":                    {"gzip", "gzip"},
		"br, gzip;q=0.5":                    {"br", "gzip"},
		"br;q=0, gzip":                      {"gzip", "gzip"},
		"br;q=0, gzip;q=0":                  {"", ""},
		"gzip; q=0.0":                       {"", ""},
		"gzip;q=x":                          {"", ""},
		"gzip;q=NaN":                        {"", ""},
		"gzip;q=2":                          {"", ""},
		"gzip;level=1":                      {"gzip", "gzip"},
		"*":                                 {"br", "gzip"},
		"*;q=0":                             {"", ""},
		"br;q=0, *":                         {"gzip", "gzip"},
		"gzip;q=0, *":                       {"br", ""},
		"*;q=0, gzip":                       {"gzip", "gzip"},
		"*;q=0.1, gzip;q=0.2":               {"gzip", "gzip"},
		"identity":                          {"", ""},
		"identity;q=1, br;q=0.5":            {"", ""},
		"identity;q=0.5, gzip;q=0.5":        {"gzip", "gzip"},
		"identity;q=0, gzip":                {"gzip", "gzip"},
		"xgzip, brx":                        {"", ""},
		"x-gzip":                            {"gzip", "gzip"},
		"deflate, zstd":                     {"", ""},
		",, ;q=1, gzip;q=1;q=0 ,;":          {"", ""},
		" gzip ; Q = 0.3 , br ; q = 0.2 \t": {"gzip", "gzip"},
	} {
		for _, h := range []http.Header{{"Accept-Encoding": {accept}}, {"Accept-Encoding": {"deflate", accept}}} {
			if got := Choose(h, Brotli, Gzip); got != want.both {
				t.Errorf("%q of both: %q", h, got)
			}
			if got := Choose(h, Gzip); got != want.gzip {
				t.Errorf("%q of gzip: %q", h, got)
			}
		}
	}
	if got := Choose(http.Header{}, Brotli, Gzip); got != "" {
		t.Errorf("a client that says nothing gets %q", got)
	}
	busy := http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}}
	if n := testing.AllocsPerRun(100, func() { Choose(busy, Brotli, Gzip) }); n != 0 {
		t.Errorf("a choice allocates %v times", n)
	}
}
