package syntax

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
)

func pemOf(t testing.TB, typ string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
}

func publicPEM(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	return pemOf(t, "PUBLIC KEY", der, err)
}

// rsaPEM is an RSA key that nobody has the other half of.
func rsaPEM(t testing.TB, bits, exponent int) string {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return publicPEM(t, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: exponent})
}

func curvePEM(t testing.TB, curve elliptic.Curve) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return publicPEM(t, &key.PublicKey)
}

func edPEM(t testing.TB) string {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return publicPEM(t, key)
}

func TestPublicKeysThatAreTaken(t *testing.T) {
	for name, text := range map[string]string{
		"RSA 2048": rsaPEM(t, 2048, 65537), "RSA 3072": rsaPEM(t, 3072, 65537), "RSA 8192": rsaPEM(t, 8192, 65537),
		"RSA, the least exponent": rsaPEM(t, 2048, 3), "RSA, the greatest exponent": rsaPEM(t, 2048, 1<<31-1),
		"P-256": curvePEM(t, elliptic.P256()), "P-384": curvePEM(t, elliptic.P384()),
		"P-521":   curvePEM(t, elliptic.P521()),
		"Ed25519": edPEM(t),
	} {
		for way, written := range map[string]string{
			"as it is": text, "without the last newline": strings.TrimSpace(text),
			"with white space around it": "\n\t " + text + " \r\n\n",
			"with other ends of lines":   strings.ReplaceAll(text, "\n", "\r\n"),
		} {
			if form, problem := PublicKey(written); form != text || problem != nil {
				t.Errorf("%s, %s: %q, %q", name, way, form, problem)
			}
		}
	}
}

func TestPublicKeysThatAreRefused(t *testing.T) {
	good := edPEM(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err8 := x509.MarshalPKCS8PrivateKey(private)
	agree, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	even := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537}
	block, _ := pem.Decode([]byte(good))
	offCurve := func() string {
		p, _ := pem.Decode([]byte(curvePEM(t, elliptic.P256())))
		p.Bytes[len(p.Bytes)-1] ^= 1
		return string(pem.EncodeToMemory(p))
	}
	for name, c := range map[string]struct {
		text    string
		problem *errs.Problem
	}{
		"nothing":                  {"", keyNotPEM},
		"white space":              {" \n", keyNotPEM},
		"some text":                {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", keyNotPEM},
		"a private key":            {pemOf(t, "PRIVATE KEY", pkcs8, err8), keyPrivate},
		"a private key beside it":  {good + pemOf(t, "EC PRIVATE KEY", pkcs8, nil), keyPrivate},
		"a private key dressed up": {pemOf(t, "PUBLIC KEY", pkcs8, nil), keyUnusable},
		"a key of PKCS #1":         {pemOf(t, "RSA PUBLIC KEY", block.Bytes, nil), keyNotPEM},
		"a certificate":            {pemOf(t, "CERTIFICATE", block.Bytes, nil), keyNotPEM},
		"two keys":                 {good + edPEM(t), keyNotPEM},
		"the same key twice":       {good + good, keyNotPEM},
		"something before":         {"key:\n" + good, keyNotPEM},
		"something after":          {good + "x", keyNotPEM},
		"a broken block before":    {"-----BEGIN PUBLIC KEY-----\n!\n" + good, keyNotPEM},
		"no end":                   {strings.Split(good, "-----END")[0], keyNotPEM},
		"another end":              {strings.Replace(good, "END PUBLIC", "END RSA PUBLIC", 1), keyNotPEM},
		"headers": {strings.Replace(good, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n",
			1), keyNotPEM},
		"an empty block":              {pemOf(t, "PUBLIC KEY", nil, nil), keyUnusable},
		"bytes that are no key":       {pemOf(t, "PUBLIC KEY", []byte{1, 2, 3}, nil), keyUnusable},
		"bytes behind the key":        {pemOf(t, "PUBLIC KEY", append(block.Bytes, 0), nil), keyUnusable},
		"a point that is on no curve": {offCurve(), keyUnusable},
		"RSA of 2047 bits":            {rsaPEM(t, 2047, 65537), keyRSA},
		"RSA of 1024 bits":            {rsaPEM(t, 1024, 65537), keyRSA},
		"RSA of 8193 bits":            {rsaPEM(t, 8193, 65537), keyRSA},
		"RSA with an exponent of 1":   {rsaPEM(t, 2048, 1), keyRSA},
		"RSA with an exponent of 2":   {rsaPEM(t, 2048, 2), keyRSA},
		"RSA with an even exponent":   {rsaPEM(t, 2048, 65536), keyRSA},
		"RSA with a huge exponent":    {rsaPEM(t, 2048, 1<<33+1), keyRSA},
		"RSA with an even modulus":    {publicPEM(t, even), keyRSA},
		"P-224":                       {curvePEM(t, elliptic.P224()), keyCurve},
		"X25519":                      {publicPEM(t, agree.PublicKey()), keyUnusable},
		"DSA":                         {dsaPEM(t), keyUnusable},
	} {
		if form, problem := PublicKey(c.text); form != "" || problem != c.problem {
			t.Errorf("%s: %q, %q; want %q", name, form, problem, c.problem)
		}
	}
}

// dsaPEM is a key of a kind that the standard library reads but does not write.
func dsaPEM(t *testing.T) string {
	type info struct {
		Algorithm struct {
			ID         asn1.ObjectIdentifier
			Parameters struct{ P, Q, G *big.Int }
		}
		Key asn1.BitString
	}
	var i info
	i.Algorithm.ID = asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 1}
	i.Algorithm.Parameters.P, i.Algorithm.Parameters.Q, i.Algorithm.Parameters.G = big.NewInt(23),
		big.NewInt(11), big.NewInt(4)
	y, err := asn1.Marshal(big.NewInt(8))
	if err != nil {
		t.Fatal(err)
	}
	i.Key = asn1.BitString{Bytes: y, BitLength: 8 * len(y)}
	der, err := asn1.Marshal(i)
	text := pemOf(t, "PUBLIC KEY", der, err)
	if _, err := x509.ParsePKIXPublicKey(der); err != nil {
		t.Fatal("not even a key of that kind:", err)
	}
	return text
}

func FuzzPublicKey(f *testing.F) {
	for _, s := range []string{"", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", rsaPEM(f, 2048, 65537),
		curvePEM(f, elliptic.P256()), edPEM(f), edPEM(f) + edPEM(f)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		form, problem := PublicKey(s)
		if (form == "") == (problem == nil) {
			t.Fatalf("PublicKey(%q) = %q, %q", s, form, problem)
		}
		if problem != nil {
			return
		}
		if again, problem := PublicKey(form); again != form || problem != nil {
			t.Errorf("the form of %q reads as %q, %q", s, again, problem)
		}
		block, rest := pem.Decode([]byte(s))
		if block == nil || strings.TrimSpace(string(rest)) != "" {
			t.Errorf("%q has no block, or more than one", s)
		}
	})
}
