package dns

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/services/catalog"
)

// The file of a View, docs/format/names.md: a line of the version, a line for each account by name, and
// a line with their number and the checksum of all that is before it.
const (
	fileName    = "names"
	fileVersion = "antipode-names 1"
	fileNone    = "-"
	fileOwn     = "own"
	fileOther   = "other"
	fileEnd     = "end"
)

// errFile reports a file that is damaged, or of another version.
var errFile = errors.New("dns: the file of names is damaged")

// held is an entry as a View keeps it.
type held struct {
	Entry
	// own is set if the stamp of the epoch's location said it: redundancy changes there first, within an epoch.
	own bool
}

// encodeFile returns the contents of the file.
func encodeFile(entries map[geo.Account]held) []byte {
	var b bytes.Buffer
	b.WriteString(fileVersion + "\n")
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		b.WriteString(encodeLine(entries[name]))
	}
	fmt.Fprintf(&b, "%s %d ", fileEnd, len(entries))
	fmt.Fprintf(&b, "%08x\n", crc.Of(b.Bytes()))
	return b.Bytes()
}

func encodeLine(e held) string {
	secondary, said := string(e.Secondary), fileOther
	if secondary == "" {
		secondary = fileNone
	}
	if e.own {
		said = fileOwn
	}
	return fmt.Sprintf("%s %s %s %s %s\n", e.Account, e.Epoch, secondary, e.Redundancy, said)
}

// parseFile is the inverse of encodeFile. It accepts what that writes and nothing else; the error wraps
// errFile.
func parseFile(b []byte) (map[geo.Account]held, error) {
	text := string(b)
	last := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	var count int
	var sum uint32
	if _, err := fmt.Sscanf(text[last:], fileEnd+" %d %x\n", &count, &sum); err != nil || count < 0 || count > entriesMax {
		return nil, fmt.Errorf("%w: no end", errFile)
	}
	lines := strings.Split(text[:last], "\n")
	if lines[0] != fileVersion || len(lines) != count+2 {
		return nil, fmt.Errorf("%w: unknown version, or lines are missing", errFile)
	}
	entries := make(map[geo.Account]held, count)
	for i, line := range lines[1 : count+1] {
		e, ok := parseLine(line)
		if !ok {
			return nil, fmt.Errorf("%w: line %d", errFile, i+2)
		}
		entries[e.Account] = e
	}
	if !bytes.Equal(encodeFile(entries), b) { // Also the checksum and the sequence of the lines.
		return nil, fmt.Errorf("%w: wrong checksum", errFile)
	}
	return entries, nil
}

func parseLine(line string) (e held, ok bool) {
	f := strings.Split(line, " ")
	if len(f) != 5 {
		return e, false
	}
	e.Account, e.Redundancy = geo.Account(f[0]), catalog.Redundancy(f[3])
	if f[2] != fileNone {
		e.Secondary = geo.Location(f[2])
	}
	e.Epoch, ok = parseEpoch(f[1])
	e.own = f[4] == fileOwn
	return e, ok && (e.own || f[4] == fileOther) && e.check() == nil
}
