package location

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/skew"
)

// What others call of the stamp while the location runs.

// ErrStopped means that the location does not run.
var ErrStopped = storageerr.ServerBusy.Saying("The location is stopped. Please retry your request.")

// Location implements directory.Stamp and link.Stamp.
func (l *Location) Location() geo.Location { return l.o.Name }

// Stamp returns the stamp while the location runs, else ErrStopped.
func (l *Location) Stamp() (*stamp.Stamp, error) {
	if s := l.stamp.Load(); s != nil {
		return s, nil
	}
	return nil, ErrStopped
}

// Submit implements ranges.Submitter.
func (l *Location) Submit(ctx context.Context, r geo.RangeID, cmd ranges.Command) error {
	s, err := l.Stamp()
	if err != nil {
		return err
	}
	return s.Submit(ctx, r, cmd)
}

// Read implements ranges.Reader.
func (l *Location) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	s, err := l.Stamp()
	if err != nil {
		return err
	}
	return s.Read(ctx, r, f)
}

// PutChunk implements link.Stamp.
func (l *Location) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	s, err := l.Stamp()
	if err != nil {
		return err
	}
	return s.PutChunk(ctx, ref, data)
}

// MissingChunks implements pair.Stamp.
func (l *Location) MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error) {
	s, err := l.Stamp()
	if err != nil {
		return nil, err
	}
	return s.MissingChunks(ctx, refs)
}

// ReadChunk implements link.Stamp.
func (l *Location) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	s, err := l.Stamp()
	if err != nil {
		return 0, err
	}
	return s.ReadChunk(ref, off, p)
}

// HoldChunks implements api/blobs.Payload.
func (l *Location) HoldChunks(refs []extent.Ref) (release func()) {
	s, err := l.Stamp()
	if err != nil {
		return func() {}
	}
	return s.HoldChunks(refs)
}

// Leader implements link.Stamp: nil while no node of this process leads the range.
func (l *Location) Leader(r geo.RangeID) *ranges.Range {
	s, err := l.Stamp()
	if err != nil {
		return nil
	}
	return s.Leader(r)
}

// Clock implements pair.Stamp.
func (l *Location) Clock() (skew.Own, error) {
	s, err := l.Stamp()
	if err != nil {
		return skew.Own{}, err
	}
	for _, id := range l.o.Local {
		if n := s.Node(id); n != nil {
			return n.Clocks().Own(), nil
		}
	}
	return skew.Own{}, ErrStopped
}

// clockTimeout bounds a question for the clock of the other location.
const clockTimeout = 2 * time.Second

// farClock asks the other location for its clock.
func (l *Location) farClock(ctx context.Context) (skew.Own, error) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	return l.far.Clock(ctx)
}
