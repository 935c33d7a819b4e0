package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dataFormat is what the VERSION file of a data folder holds.
const dataFormat = "antipode data 3"

// folder is a locked data folder.
type folder struct{ lock *os.File }

// Where an operator chooses the data folder.
const (
	dataFlag  = "--data"
	dataField = "the field data of the configuration"
)

// openFolder makes the folder if missing, locks it, and checks its format version. setting is where the folder is chosen.
func openFolder(dir, setting string) (*folder, error) {
	if err := checkOwn(dir, setting); err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("cannot make the data folder %s: %w; %s", dir, err, otherFolder(err, setting))
	}
	lock, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the data folder %s: %w; %s", dir, err, otherFolder(err, setting))
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another antipode; stop it, or choose another with %s", dir, setting)
	}
	f := &folder{lock}
	if err := checkFormat(dir, setting); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// otherFolder is what to do about a folder that cannot be made or written.
func otherFolder(err error, setting string) string {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Sprintf("give the user with the id %d the right to write there, or choose another with %s", os.Geteuid(), setting)
	}
	return "choose another with " + setting
}

// checkOwn refuses a folder that has files and was never a data folder, before anything in it is changed: a wrong path
// must not close somebody's folder to its readers.
func checkOwn(dir, setting string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // A folder that is not there yet is made, and what is wrong with another is reported then.
	}
	foreign := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "VERSION":
			return nil
		case name == "LOCK", strings.HasPrefix(name, newPrefix): // A start that ended before it wrote VERSION.
		case name == "lost+found": // The root of a file system.
		case foreign == "":
			foreign = name
		}
	}
	if foreign == "" {
		return nil
	}
	return fmt.Errorf("the folder %s is no data folder of antipode: it has %s; choose an empty or a new folder with %s", dir, foreign, setting)
}

// makeFolder makes a folder if missing, and takes the rights of other users from one that this user owns: earlier versions
// made it readable for all. So nobody else reaches what is in it, whatever the modes there. Not from one that is shared as
// /tmp is; and the root of a volume may be somebody else's.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Geteuid() || info.Mode()&os.ModeSticky != 0 {
		return nil
	}
	return os.Chmod(dir, info.Mode()&^0o077)
}

// openStopped locks the data folder that dir is or is in, so that no process starts on it
// meanwhile. It changes nothing there. A folder without a lock file, such as a copy, is not
// locked.
func openStopped(dir string) (*folder, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for range 3 { // A node's folder is two below.
		if _, err := os.Stat(filepath.Join(path, "VERSION")); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	lock, err := os.Open(filepath.Join(path, "LOCK"))
	if errors.Is(err, os.ErrNotExist) {
		return &folder{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the data folder %s: %w", path, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the data folder %s is in use by an antipode that runs; stop it first", path)
	}
	return &folder{lock}, nil
}

// checkFormat reads VERSION, or writes it into a new folder.
func checkFormat(dir, setting string) error {
	path := filepath.Join(dir, "VERSION")
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return writeDurable(path, dataFormat+"\n")
	case err != nil:
		return err
	case strings.TrimSpace(string(have)) != dataFormat:
		return fmt.Errorf("the data folder %s has format %q, this antipode reads %q; use the version that wrote it, or another folder with %s",
			dir, strings.TrimSpace(string(have)), dataFormat, setting)
	}
	return nil
}

// newPrefix begins the names of files that are being written.
const newPrefix = ".new-"

// writeDurable writes a small file so that a crash leaves it complete or absent.
func writeDurable(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	dir, openErr := os.Open(filepath.Dir(path))
	if err = errors.Join(err, openErr); err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Close unlocks the folder.
func (f *folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}
