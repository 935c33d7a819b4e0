package queues

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Q6, Q7: what a check of a whole subqueue finds: nothing in one that commands made, and each invariant that its rows break.
func TestReadContents(t *testing.T) {
	t.Parallel()
	r := rows{}
	at := Subqueue{Queue: goldenQueue(), ID: 7}
	now := ticksAfter(0, time.Hour)
	do := func(c *Put) {
		now += 2
		c.Command = Command{At: at}
		require.NoError(t, r.apply(t, c, now))
	}
	require.NoError(t, r.apply(t, &Open{Command: Command{At: at}}, now))
	do(&Put{ID: MessageID{1}, PutOptions: PutOptions{Text: []byte("short"), TTL: -1}})
	do(&Put{ID: MessageID{2}, PutOptions: PutOptions{Text: make([]byte, InlineMax+1), TTL: time.Minute}})
	prefix := string(at.Partition().Append(nil))
	whole := map[string]string{}
	var texts, messages []string
	for k, v := range r {
		row := k[len(prefix):]
		whole[row] = string(v)
		switch row[0] {
		case rowText:
			texts = append(texts, row)
		case rowMessage:
			messages = append(messages, row)
		}
	}
	c, err := ReadContents(whole, at.ID)
	require.NoError(t, err)
	require.Len(t, c.Messages, 2)
	require.Equal(t, "short", string(c.Messages[MessageID{1}].Text))
	require.Len(t, c.Messages[MessageID{2}].Text, InlineMax+1)
	require.Equal(t, StateAll, c.State)
	first, _, err := readHead(r, []byte(prefix), at.ID)
	require.NoError(t, err)
	first.first = now + 1
	for name, broken := range map[string]func(map[string]string){
		"guarantee H":     func(m map[string]string) { m[string([]byte{rowHead})] = string(first.append(nil)) },
		"count":           func(m map[string]string) { delete(m, string([]byte{rowHead})) },
		"without a text":  func(m map[string]string) { delete(m, texts[0]) },
		"text of nobody":  func(m map[string]string) { m[string(textRow(MessageID{9}))] = "x" },
		"twice":           func(m map[string]string) { m[string(place{now + 9, MessageID{1}}.append(nil))] = m[messages[0]] },
		"another row":     func(m map[string]string) { m["\x09"] = "" },
		"a row of no key": func(m map[string]string) { m[""] = "" },
		"malformed":       func(m map[string]string) { m[messages[1]] = "x" },
		"malformed key":   func(m map[string]string) { m["\x02x"] = m[messages[0]] },
	} {
		rows := maps.Clone(whole)
		broken(rows)
		_, err := ReadContents(rows, at.ID)
		require.Error(t, err, name)
	}
}
