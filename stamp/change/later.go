package change

import (
	"errors"
	"fmt"
)

// Understood returns nil if this build can apply every part of a group: it knows the version of the group, the
// kind of each part, the version of each record, closed record, gate and image in it, and the reason of each stop. Otherwise the error is
// ErrVersion: a leader of a later version wrote it. Nothing else is checked; a group that is damaged is
// left to ParseGroup.
//
// A replica asks before it takes an entry into its log, so that what it acknowledges it can also apply.
// Therefore a value that travels in a part and gets another layout also gets another kind of part.
func Understood(group []byte) error {
	if len(group) < groupHeader+crcLen {
		return nil
	}
	later := error(nil)
	if isLater(group) {
		later = fmt.Errorf("%w: group of version %d, this program knows %d", ErrVersion, group[0], formatVersion)
	} else {
		g := cutGroup(group)
		_ = g.Parts(func(kind PartKind, body []byte) error { // What it cannot cut is damaged.
			later = understoodPart(kind, body)
			return later
		})
	}
	if later == nil || !checksumFits(group) {
		return nil
	}
	return later
}

// IsLater reports whether an error is that a later version wrote something.
func IsLater(err error) bool { return errors.Is(err, ErrVersion) }

// Undecoded reports whether an error is that bytes could not be decoded, for being damaged or of a later version.
func Undecoded(err error) bool { return errors.Is(err, ErrMalformed) || errors.Is(err, ErrVersion) }

// isLater reports whether a value that begins with its version is of a later one.
func isLater(b []byte) bool { return len(b) > 0 && b[0] > formatVersion }

// wrongVersion returns why bytes that begin with a version cannot be decoded, nil for this one.
func wrongVersion(v byte) error {
	switch {
	case v > formatVersion:
		return ErrVersion
	case v < formatVersion:
		return ErrMalformed
	}
	return nil
}

// onlyLater returns an error that is ErrVersion: what is damaged is left to apply.
func onlyLater(err error) error {
	if IsLater(err) {
		return err
	}
	return nil
}

// knownVersion returns ErrVersion for the body of a part whose version is above the last one that is known.
func knownVersion(kind PartKind, body []byte, last byte) error {
	if len(body) > 0 && body[0] > last {
		return fmt.Errorf("%w: part of kind %d has version %d, this program knows %d", ErrVersion, kind, body[0], last)
	}
	return nil
}

func understoodPart(kind PartKind, body []byte) error {
	switch kind {
	case PartChange, PartReceived, PartReceivedCursor, PartReceivedBase:
		return knownVersion(kind, body, formatVersion)
	case PartReceivedClosed:
		return knownVersion(kind, body, versionWalled)
	case PartStop:
		_, _, err := ParseStopPart(body)
		return onlyLater(err)
	case PartGate, PartGateAgreed:
		_, _, err := ParseGatePart(body)
		return onlyLater(err)
	case PartImage:
		_, _, err := ParseImagePart(body)
		return onlyLater(err)
	case PartLevels:
		_, err := ParseLevels(body)
		return onlyLater(err)
	case PartClosed, PartGeneration, PartTrim, PartWipe, PartCompared:
		return nil
	case PartFreeze, PartWaiting, PartSplit: // Reserved.
	}
	return fmt.Errorf("%w: part of kind %d", ErrVersion, kind)
}
