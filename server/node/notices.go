package node

import (
	"bytes"
	"fmt"
	"os"

	"antipode/server/notices"
)

// openNotices begins to post events of failovers, if there is a receiver.
func (n *Node) openNotices() error {
	c := n.o.Config.Notices
	if c.URL == "" {
		return nil
	}
	o := notices.Options{URL: c.URL, Timeout: c.Timeout.Duration(), Logger: n.o.Logger}
	if c.KeyFile != "" {
		key, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return fmt.Errorf("notices.key_file: %w", err)
		}
		if o.Key = bytes.TrimSpace(key); len(o.Key) == 0 {
			return fmt.Errorf("notices.key_file: %s has no key", c.KeyFile)
		}
	}
	n.notices = notices.Open(o)
	return nil
}
