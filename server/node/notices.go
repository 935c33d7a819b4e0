package node

import (
	"fmt"

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
		key, err := notices.ReadKey(c.KeyFile)
		if err != nil {
			return fmt.Errorf("notices.key_file: %w", err)
		}
		o.Key = key
	}
	n.notices = notices.Open(o)
	return nil
}
