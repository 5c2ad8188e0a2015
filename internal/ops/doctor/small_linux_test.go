package doctor

import "syscall"

func mountSmall(path string) error { return syscall.Mount("tmpfs", path, "tmpfs", 0, "size=100k") }

func unmountSmall(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }
