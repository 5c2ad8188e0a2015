// Command roots prints the certificates that the image trusts: Mozilla's, as golang.org/x/crypto has them at the
// version in go.mod.
//
// Certificates that Mozilla trusts only up to a date are left out: a file cannot say that, and what was issued before
// has expired or soon will.
package main

import (
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			fmt.Fprintln(os.Stderr, "roots:", err)
			os.Exit(1)
		}
	}
}
