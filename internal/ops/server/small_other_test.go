//go:build !linux

package server

import "errors"

func mountSmall(string) error { return errors.ErrUnsupported }

func unmountSmall(string) error { return errors.ErrUnsupported }
