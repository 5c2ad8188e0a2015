package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestVariablesThatAreNoSettings(t *testing.T) {
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for variable, says := range map[string]string{
		"SIGNET_LOGLEVEL=debug":                      "SIGNET_LOGLEVEL is not a setting, and is ignored: did you mean SIGNET_LOG_LEVEL?",
		"SIGNET_DATABSE_URL=secret":                  "SIGNET_DATABSE_URL is not a setting, and is ignored: see signet start --help",
		"SIGNET_EXTERNAL_URI=https://id.example.org": "did you mean SIGNET_EXTERNAL_URL?",
		"SIGNET_MASTERKEY=secret":                    "did you mean SIGNET_MASTER_KEY?",
		"SIGNET_LOG_LEVEL=debug":                     "",
		"SIGNET_MASTER_KEY=secret":                   "",
		"SIGNET_TO=postgres://x":                     "", // of signet move
		"SIGNET_NOTHING=":                            "",
		"OTHER_LOGLEVEL=debug":                       "",
		"SIGNET_SERVICE_HOST=10.0.0.1":               "",
		"SIGNET_SERVICE_PORT=8080":                   "",
		"SIGNET_SERVICE_PORT_HTTP=8080":              "",
		"SIGNET_PORT=tcp://10.0.0.1:8080":            "",
		"SIGNET_PORT_8080_TCP=tcp://10.0.0.1:8080":   "",
		"SIGNET_PORT_8080_TCP_ADDR=10.0.0.1":         "",
		"SIGNET_DB_SERVICE_HOST=10.0.0.1":            "",
		"SIGNET_DB_PORT_5432_TCP_PROTO=tcp":          "",
		"SIGNET_PORTS=1":                             "SIGNET_PORTS is not a setting",
	} {
		var said bytes.Buffer
		warnAboutVariables(&said, parser.Model, []string{variable})
		if got := said.String(); says == "" && got != "" || !strings.Contains(got, says) ||
			strings.Contains(got, "secret") {
			t.Errorf("%s: %q", variable, got)
		}
	}
}
