package location

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// incarnationFile, in a location's folder, holds the creation time of the incoming stream. It
// shows whether the bus was wiped while the process was stopped (R15). It serves an alarm only:
// it is not synced, it may be missing, and lost records are pulled whatever it holds.
const incarnationFile = "stream-incarnation"

func (l *Location) incarnationPath() string {
	return filepath.Join(l.o.Dir, string(l.o.Name), incarnationFile)
}

// knownIncarnation returns what rememberIncarnation last stored, or zero.
func (l *Location) knownIncarnation() time.Time {
	b, err := os.ReadFile(l.incarnationPath())
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	t, parseErr := time.Parse(time.RFC3339Nano, string(b))
	if err = errors.Join(err, parseErr); err != nil {
		l.o.Logger.Warn("cannot read which stream was known; a wiped bus goes unnoticed this time",
			"file", l.incarnationPath(), "error", err)
		return time.Time{}
	}
	return t
}

func (l *Location) rememberIncarnation(t time.Time) {
	if err := os.WriteFile(l.incarnationPath(), []byte(t.UTC().Format(time.RFC3339Nano)), 0o600); err != nil {
		l.o.Logger.Warn("cannot store which stream is known", "file", l.incarnationPath(), "error", err)
	}
}
