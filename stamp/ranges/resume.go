package ranges

import (
	"errors"

	"antipode/geo"
	"antipode/stamp/change"
)

// kindResume is the kind of Resume.
const kindResume = "ranges.resume"

// errResume is returned for bytes that are not an encoded Resume, or not its result.
var errResume = errors.New("ranges: malformed command to resume a stream")

// Resume is the command that lets a stream go on that was stopped for a record which one node, or one
// release, could not decode or evaluate (R11). If the record still cannot be, it stops again. Other stops
// stay: nothing would find them again before Last Sync Time had passed them (R16).
type Resume struct {
	Stream geo.Stream
	// Was is why the stream was stopped, once the command took effect.
	Was change.StopReason
}

// Resumes reports whether a stop for this reason ends by a Resume.
func Resumes(why change.StopReason) bool {
	return why == change.StopPoison || why == change.StopVersion
}

// Evaluate implements Command.
func (c *Resume) Evaluate(tx *Tx) error {
	why, _ := tx.Stopped(c.Stream)
	if c.Was = why.Reason; Resumes(c.Was) {
		tx.Stop(c.Stream, change.Stop{})
	}
	return nil
}

// Kind implements Portable.
func (c *Resume) Kind() string { return kindResume }

// Encode implements Portable: the body of a change.PartStop that ends a stop.
func (c *Resume) Encode() []byte { return change.AppendStopPart(nil, c.Stream, change.Stop{}) }

// EncodeResult implements Portable: Was.
func (c *Resume) EncodeResult() []byte { return []byte{byte(c.Was)} }

// DecodeResult implements Portable.
func (c *Resume) DecodeResult(b []byte) error {
	if len(b) != 1 {
		return errResume
	}
	c.Was = change.StopReason(b[0])
	return nil
}

// OwnCommands are the commands of this package that a node accepts from other nodes.
func OwnCommands() Commands {
	return Commands{kindSettle: parseSettle, kindEndSettle: parseEndSettle, kindDropFound: parseDropFound, kindResume: func(body []byte) (Portable, error) {
		st, why, err := change.ParseStopPart(body)
		if err != nil || why != (change.Stop{}) {
			return nil, errResume
		}
		return &Resume{Stream: st}, nil
	}}
}
