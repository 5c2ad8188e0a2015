//go:build !linux

package doctor

import "errors"

func mountSmall(string) error { return errors.ErrUnsupported }

func unmountSmall(string) error { return errors.ErrUnsupported }
