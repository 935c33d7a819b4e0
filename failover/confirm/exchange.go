package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/replication/link"
)

// method is on the wire: never rename it.
const method = "confirm.Epochs"

// PageMax is how many accounts one question names: some 100 KiB. So an exchange over 10,000 accounts is ten calls.
const PageMax = 1000

// Epochs are the epochs of accounts.
type Epochs = map[geo.Account]geo.Epoch

// Ask asks the other location which of the accounts have a higher epoch there.
type Ask func(ctx context.Context, of Epochs) (above Epochs, err error)

// account is an account with an epoch on the wire.
type account struct {
	Name     geo.Account     `json:"name"`
	Number   geo.EpochNumber `json:"number"`
	Location geo.Location    `json:"location"`
}

// question and answer are the bodies of a call, in JSON.
type question struct {
	Accounts []account `json:"accounts"`
}

type answer struct {
	// Above are those of the question that have a higher epoch where it is answered.
	Above []account `json:"above"`
}

func listOf(of Epochs) []account {
	out := make([]account, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, account{name, of[name].Number, of[name].Location})
	}
	return out
}

func epochsOf(list []account) Epochs {
	out := Epochs{}
	for _, a := range list {
		out[a.Name] = geo.Epoch{Number: a.Number, Location: a.Location}
	}
	return out
}

// Remote asks over calls to the other location, which Serve answers.
func Remote(c link.Caller) Ask {
	return func(ctx context.Context, of Epochs) (Epochs, error) {
		body, err := json.Marshal(question{listOf(of)})
		if err != nil {
			return nil, err
		}
		b, err := c.Call(ctx, method, body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var out answer
		if err := json.Unmarshal(b, &out); err != nil {
			return nil, fmt.Errorf("%s: malformed answer: %w", method, err)
		}
		return epochsOf(out.Above), nil
	}
}

// errTooMany: a question names more accounts than a page has.
var errTooMany = errors.New("confirm: a question names too many accounts")

// Serve answers the questions of the other location by f, which reads with a quorum (R5). Every node with a replica of
// the catalog can answer, whether its own epochs are confirmed or not: so both locations may start together.
func Serve(h link.Handlers, l *link.Link, f Ask) {
	h.Handle(method, func(ctx context.Context, body []byte) ([]byte, error) {
		if cut, _ := l.State(); cut {
			return nil, link.ErrCut
		}
		var q question
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("%s: malformed question: %w", method, err)
		}
		if len(q.Accounts) > PageMax {
			return nil, errTooMany
		}
		above, err := f(ctx, epochsOf(q.Accounts))
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer{listOf(above)})
	})
}

// errAnswer: an answer names what was not asked for.
var errAnswer = errors.New("confirm: the other location answers with an account or an epoch that was not asked for")

// Run asks for all accounts, page by page, and returns those with a higher epoch than the one they were asked for with.
// The statement is one about each account alone, so the pages need not be of one moment. Without accounts it asks
// too: an answer shows that the other location is there.
func Run(ctx context.Context, own Epochs, ask Ask) (Epochs, error) {
	above, names := Epochs{}, slices.Sorted(maps.Keys(own))
	for {
		page := Epochs{}
		for _, name := range names[:min(len(names), PageMax)] {
			page[name] = own[name]
		}
		higher, err := ask(ctx, page)
		if err != nil {
			return nil, err
		}
		for name, e := range higher {
			if asked, ok := page[name]; !ok || e.Compare(asked) <= 0 {
				return nil, fmt.Errorf("%w: %s in epoch %s", errAnswer, name, e)
			}
			above[name] = e
		}
		if names = names[len(page):]; len(names) == 0 {
			return above, nil
		}
	}
}
