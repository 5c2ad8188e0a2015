package disk

import "syscall"

// FileSystem names the kind of file system of a path, where that is one with a property worth knowing; else it is
// empty.
func FileSystem(path string) (string, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return "", err
	}
	return map[uint32]string{0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb", 0x65735546: "fuse", 0x01021997: "9p",
		0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x794c7630: "overlay"}[uint32(stat.Type)], nil
}
