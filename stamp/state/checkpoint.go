package state

// Checkpoint makes a store in the folder dir, which must not exist, of what is durable here now: one moment of it.
// Tables are hard links, so it takes no longer for a large store, and no room before tables here are compacted. The
// caller flushes first what the checkpoint is to have.
func (s *Store) Checkpoint(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.db.Checkpoint(dir)
}
