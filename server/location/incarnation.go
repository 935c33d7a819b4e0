package location

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// incarnationFile, in a location's folder, names the incarnation of the stream it
// takes: when it was made. So a carrier that was wiped while the process was stopped
// is told from one that was not (R15). It guards an alarm and no data: it is neither
// synced nor missed, and whatever it says, lost records are pulled.
const incarnationFile = "stream-incarnation"

func (l *Location) incarnationPath() string {
	return filepath.Join(l.o.Dir, string(l.o.Name), incarnationFile)
}

// knownIncarnation is what rememberIncarnation last stored, zero for nothing.
func (l *Location) knownIncarnation() time.Time {
	b, err := os.ReadFile(l.incarnationPath())
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	t, parseErr := time.Parse(time.RFC3339Nano, string(b))
	if err = errors.Join(err, parseErr); err != nil {
		l.o.Logger.Warn("cannot read which stream was known; a wiped carrier goes unnoticed until the next one",
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
