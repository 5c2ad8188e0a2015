package idp

import (
	"context"
	"errors"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ReadSecret reads the client secret of a provider, to be sent to it; empty where there is none. Errors: those of
// event.Reader; one that says nothing of the secret where it cannot be opened.
func ReadSecret(ctx context.Context, r event.Reader, master secret.MasterKey, id string) (string, error) {
	row, err := r.Row(ctx, SecretRow(id))
	if err != nil || row == nil {
		return "", err
	}
	plain, err := master.Unwrap("idp client secret", row.Value, []byte(id))
	if err != nil {
		return "", errors.New("the client secret of an identity provider cannot be opened")
	}
	return string(plain), nil
}
