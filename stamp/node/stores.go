package node

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/room"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// stores are what a node keeps on its disk.
type stores struct {
	o       *Options   // of the node
	rng     *rand.Rand // of the node
	log     state.Log
	state   *state.Store
	extents *extent.Store
	logs    map[geo.RangeID]state.RangeLog
	has     []geo.RangeID // the ranges here
}

// open opens the state store, the chunks, and the log of every range of has.
func (s *stores) open(has []geo.RangeID) (err error) {
	s.has = has
	if err := s.openState(); err != nil {
		return err
	}
	fs := s.o.State.FS
	if s.extents, err = extent.Open(fs, fs.PathJoin(s.o.Dir, "extents"), extent.Options{Rand: s.newSource(), Base: s.o.Base, Registerer: s.o.registerer()}); err != nil {
		return err
	}
	return s.openLogs(has)
}

// openState opens the state store. If it is damaged it is set aside, and an empty one takes its
// place: the log is then applied again from its beginning, or, if it was trimmed, the replica is
// lost.
func (s *stores) openState() (err error) {
	dir := s.o.State.FS.PathJoin(s.o.Dir, "state")
	if s.state, err = state.Open(dir, s.o.State); !state.Damaged(err) {
		return err
	}
	return s.replaceState(err)
}

// replaceState sets the state store aside, which is closed, and opens an empty one.
func (s *stores) replaceState(why error) (err error) {
	s.state = nil
	dir := s.o.State.FS.PathJoin(s.o.Dir, "state")
	if err := s.setAside(dir, why); err != nil {
		return err
	}
	if s.state, err = state.Open(dir, s.o.State); err != nil {
		s.state = nil
	}
	return err
}

// openLogs opens the log of every range of has. If the log is damaged it is set aside whole, and
// an empty one takes its place: each replica then misses its hard state and is lost (R4).
func (s *stores) openLogs(has []geo.RangeID) error {
	fs := s.o.State.FS
	dir := fs.PathJoin(s.o.Dir, "log")
	err := s.tryLogs(dir, has)
	if !state.Damaged(err) {
		return err
	}
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			return err
		}
		s.log = nil
	}
	if err := s.setAside(dir, err); err != nil {
		return err
	}
	return s.tryLogs(dir, has)
}

func (s *stores) tryLogs(dir string, has []geo.RangeID) (err error) {
	o := s.o.State
	o.Rand = s.newSource()
	if err := state.CheckDamaged(o.FS, dir); err != nil {
		return err
	}
	if s.log, err = seglog.Open(dir, o); err != nil {
		s.log = nil
		return err
	}
	for _, id := range has {
		if s.logs[id], err = s.log.Range(id, nil); err != nil {
			return err
		}
	}
	return nil
}

// setAside takes the folder of a damaged store out of use, so that an operator can examine it.
func (s *stores) setAside(dir string, why error) error {
	aside, err := room.SetAside(s.o.State.FS, dir, s.o.Clock.Now(), s.recoveries())
	s.o.Logger.Error("store is damaged: set aside; what is lost by that is rebuilt from the peers", "aside", aside, "error", why)
	return err
}

// recoveries: see membership.Recoveries.
func (s *stores) recoveries() uint64 { return membership.Recoveries(s.o.State.FS, s.o.Dir, s.has) }

// pressed reports whether a write to the state may have to wait. A stepped node waits, so that its passes depend on nothing else.
func (s *stores) pressed() bool { return !s.o.Stepped && s.state.Pressed() }

func (s *stores) close() error {
	var errs []error
	if s.extents != nil {
		errs = append(errs, s.extents.Close())
	}
	if s.state != nil {
		errs = append(errs, s.state.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// newSource returns random bytes for one user: the log and the extents draw concurrently with
// the scheduler.
func (s *stores) newSource() io.Reader {
	seed := [32]byte{byte(s.o.ID)}
	binary.LittleEndian.PutUint64(seed[8:], s.rng.Uint64())
	return rand.NewChaCha8(seed)
}
