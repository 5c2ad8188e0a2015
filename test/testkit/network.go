package testkit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// FreePort is a port of this machine that nobody listens on, for what is started later, or again. The system gives such
// ports to nobody, neither to connections nor to who asks for any port, and no other test gets it as long as this process
// runs.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 10_000 {
		port := strconv.Itoa(10_000 + mathrand.IntN(10_000))
		if !reserve(t, port) {
			continue
		}
		listener, err := net.Listen("tcp", ":"+port) // on all addresses
		if err != nil {
			continue
		}
		Must(t, listener.Close())
		return port
	}
	t.Fatal("there is no free port")
	return ""
}

// Certify makes a certificate for localhost: tls.crt, tls.key and, with both, tls.pem. Others may read them, for proxies
// give up the rights of root. It gives what trusts the certificate.
func Certify(t testing.TB, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	Must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	Must(t, err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for name, text := range map[string][]byte{"tls.crt": crt, "tls.key": secret,
		"tls.pem": append(bytes.Clone(crt), secret...)} {
		Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(crt)
	return roots
}
