package directory

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"antipode/geo"
	"antipode/services/catalog"
)

const (
	// endingsMax bounds the accounts of which this process knows why their failovers ended.
	endingsMax = 20_000
	// causesMax bounds the causes that the failover of a location names.
	causesMax = 5
)

// endings are why failovers of accounts ended without effect, or did not begin, as this process saw it: the record of an
// account forgets that with its operation. The failover of a location needs it for its report. The zero value has none.
// Methods may be called concurrently.
type endings struct {
	mu sync.Mutex
	of map[geo.Account]ending // guarded by mu
}

// ending is the last one of an account. why is empty if it is not known. refused: its failover did not begin.
type ending struct {
	why     string
	refused bool
}

func (e *endings) set(a geo.Account, to ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[geo.Account]ending{}
	}
	if _, have := e.of[a]; have || len(e.of) < endingsMax {
		e.of[a] = to
	}
}

func (e *endings) get(a geo.Account) ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[a]
}

// forget forgets all, before the failover of a location begins those of its accounts.
func (e *endings) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of = nil
}

// remaining is a cause that kept accounts from moving.
type remaining struct {
	accounts int
	// first is one of them, and the ending is its.
	first geo.Account
	ending
}

// varying is what differs between reasons of one cause: numbers.
var varying = regexp.MustCompile(`[0-9]+`)

// remain says why accounts did not move that the failover of a location was of: a line for each cause, most accounts first,
// with the command that shows more. It is empty if all have moved.
func (d *Directory) remain(w *work, m *catalog.LocationMove) string {
	refused := map[geo.Account]ending{} // Another process may have begun the wave.
	for _, r := range m.Refused {
		refused[r.Account] = ending{r.Why, true}
	}
	var causes []*remaining
	by := map[string]*remaining{}
	for _, a := range w.left(m) {
		end, ok := refused[a.Name]
		if !ok {
			end = d.endings.get(a.Name)
		}
		kind := varying.ReplaceAllString(strings.ReplaceAll(end.why, string(a.Name), ""), "")
		if by[kind] == nil {
			by[kind] = &remaining{first: a.Name, ending: end}
			causes = append(causes, by[kind])
		}
		by[kind].accounts++
	}
	slices.SortStableFunc(causes, func(a, b *remaining) int { return cmp.Compare(b.accounts, a.accounts) })
	var out []string
	more := 0
	for i, c := range causes {
		if i < causesMax {
			out = append(out, c.String())
		} else {
			more += c.accounts
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more for other causes: antipodectl events", more))
	}
	return strings.Join(out, "\n")
}

func (c *remaining) String() string {
	who := "account " + string(c.first)
	if c.accounts > 1 {
		who = fmt.Sprintf("%d accounts, such as %s", c.accounts, c.first)
	}
	switch {
	case c.why == "":
		return who + ": the reason is not known here: antipodectl events"
	case strings.Contains(c.why, "antipodectl "):
		return who + ": " + c.why
	case c.refused:
		return fmt.Sprintf("%s: %s: antipodectl account show %s", who, c.why, c.first)
	}
	return fmt.Sprintf("%s: %s: antipodectl why %s", who, c.why, c.first)
}
