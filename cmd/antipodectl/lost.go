package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) lostCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "lost",
		Short: "Show, export and drop the changes that an unplanned failover has lost",
		Long: `lost is about the changes that the former primary of an account had committed, and that the
location which became its primary by an unplanned failover does not have. The former primary
keeps them when it returns: what was changed, when, and whether the client surely had an
answer; and what the changed rows held, in its lost-and-found.`,
		Example: `  antipodectl lost list pictures
  antipodectl lost export pictures --to lost`,
	})
	c.AddCommand(t.lostList(), t.lostExport(), t.lostDrop())
	return c
}

// lostReport is what all locations have kept of the lost changes of an account.
type lostReport struct {
	Account   geo.Account      `json:"account"`
	Locations []lostAt         `json:"locations"`
	Silent    []lostUnanswered `json:"silent,omitempty"`
	// Awaited is the former primary that has not reported yet, nil for none.
	Awaited *admin.LostAwaited `json:"awaited,omitempty"`
}

// lostAt is what one location has kept.
type lostAt struct {
	Location geo.Location       `json:"location"`
	Claims   []admin.LostClaim  `json:"claims"`
	Changes  []admin.LostChange `json:"changes"`
	awaited  *admin.LostAwaited
}

// lostUnanswered is a location that did not answer.
type lostUnanswered struct {
	Location geo.Location `json:"location"`
	Reason   string       `json:"reason"`
}

// lostOf asks both locations of an account, or the one that is named.
func (t *tool) lostOf(ctx context.Context, name geo.Account, only string) (lostReport, error) {
	out := lostReport{Account: name, Locations: []lostAt{}}
	at := []geo.Location{geo.Location(only)}
	if only == "" {
		a, err := t.client.Account(ctx, name)
		if err != nil {
			return out, err
		}
		if at = []geo.Location{a.Primary}; a.Secondary != "" {
			at = []geo.Location{a.Secondary, a.Primary}
		}
	}
	var failed error
	for _, l := range at {
		kept, err := t.lostAt(ctx, name, l)
		if err != nil {
			out.Silent, failed = append(out.Silent, lostUnanswered{l, err.Error()}), err
			continue
		}
		if kept.awaited != nil {
			out.Awaited = kept.awaited
		}
		if len(kept.Claims)+len(kept.Changes) > 0 {
			out.Locations = append(out.Locations, kept)
		}
	}
	if len(out.Silent) == len(at) {
		return out, failed
	}
	return out, nil
}

// lostAt reads all pages of one location.
func (t *tool) lostAt(ctx context.Context, name geo.Account, l geo.Location) (lostAt, error) {
	out, q := lostAt{Location: l, Claims: []admin.LostClaim{}, Changes: []admin.LostChange{}}, admin.LostQuery{Account: name}
	for {
		page, err := t.client.Lost(ctx, l, q)
		if err != nil {
			return out, err
		}
		if page.Awaited != nil {
			out.awaited = page.Awaited
		}
		for _, c := range page.Claims {
			known := false
			for _, has := range out.Claims {
				known = known || has == c
			}
			if !known {
				out.Claims = append(out.Claims, c)
			}
		}
		if out.Changes = append(out.Changes, page.Changes...); !page.More {
			return out, nil
		}
		q.After = page.Changes[len(page.Changes)-1].Key
	}
}

func (t *tool) lostList() *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "list ACCOUNT",
		Short: "List the changes of an account that an unplanned failover has lost",
		Long: `list shows each lost change, which location kept it, and what each range of that location
claims about them: that these are all, or since when there may be others, and why.

ANSWERED is surely where the former primary had answered the client, else perhaps. Of one
that perhaps was answered, the client may have an answer, an error, or none.

While the former primary has not followed the failover its changes are not known: list names it,
and since when.`,
		Example: `  antipodectl lost list pictures
  antipodectl lost list pictures --output json | jq '.locations[].changes[] | select(.answered == "surely")'`,
		Args: exactly("ACCOUNT"),
		RunE: answer(t, func(ctx context.Context, args []string) (lostReport, error) {
			return t.lostOf(ctx, geo.Account(args[0]), at)
		}, writeLost),
	}
	c.Flags().StringVar(&at, "location", "", "ask this location alone")
	return c
}

func writeLost(w io.Writer, r lostReport) {
	for _, s := range r.Silent {
		_, _ = fmt.Fprintf(w, "%s does not answer: %s\n", s.Location, check.OneLine(s.Reason))
	}
	if r.Awaited != nil {
		_, _ = fmt.Fprintf(w, "%s has not reported yet what it alone has of account %s: it has not followed the failover of %s; "+
			"it reports once it reaches the other location\n", r.Awaited.Location, r.Account, instantOrUnknown(r.Awaited.Since))
	}
	if len(r.Locations) == 0 {
		if r.Awaited != nil {
			return
		}
		_, _ = fmt.Fprintf(w, "no location that answers has lost changes of account %s\n", r.Account)
		return
	}
	claims := [][]string{{"LOCATION", "SERVICE", "EPOCH", "CHANGES", "PERHAPS", "CLAIM"}}
	for _, l := range r.Locations {
		for _, c := range l.Claims {
			claims = append(claims, []string{
				string(l.Location), c.Service, c.Epoch.String(), strconv.FormatUint(c.Changes, 10), strconv.FormatUint(c.Perhaps, 10), claimText(c),
			})
		}
	}
	table(w, claims)
	changes := [][]string{{"LOCATION", "SERVICE", "CONTAINER", "OBJECT", "ROW", "SET", "DELETED", "BYTES", "PAYLOAD", "COMMITTED", "ANSWERED"}}
	for _, l := range r.Locations {
		for _, c := range l.Changes {
			answered := c.Answered
			if c.Unreadable != "" {
				answered = "unreadable"
			}
			changes = append(changes, []string{
				string(l.Location), c.Service, c.Container, c.Object, c.Row, strconv.Itoa(c.Rows), strconv.Itoa(c.Deleted),
				strconv.FormatUint(c.Bytes, 10), strconv.FormatUint(c.PayloadBytes, 10), instantOrUnknown(c.Committed), answered,
			})
		}
	}
	if len(changes) > 1 {
		_, _ = fmt.Fprintln(w)
		table(w, changes)
	}
}

func claimText(c admin.LostClaim) string {
	switch {
	case c.Complete:
		return "complete"
	case c.IncompleteSince.IsZero():
		return "incomplete: " + c.Reason
	}
	return fmt.Sprintf("incomplete since %s: %s", instantOrUnknown(c.IncompleteSince), c.Reason)
}

// lostExported is what lost export prints.
type lostExported struct {
	Changes int      `json:"changes"`
	Found   exported `json:"found"`
	Folder  string   `json:"folder"`
}

func (t *tool) lostExport() *cobra.Command {
	var folder, at string
	c := &cobra.Command{
		Use:   "export ACCOUNT --to FOLDER",
		Short: "Write the lost changes of an account, and what their rows held, to files",
		Long: `export writes changes.json with what lost list shows, and for each location that has any, in a
folder of its name, the rows of the account in its lost-and-found and their payload, as
fork found export does.`,
		Example: `  antipodectl lost export pictures --to lost`,
		Args:    exactly("ACCOUNT"),
		RunE: answer(t, func(ctx context.Context, args []string) (lostExported, error) {
			return t.exportLost(ctx, geo.Account(args[0]), at, folder)
		}, func(w io.Writer, e lostExported) {
			_, _ = fmt.Fprintf(w, "%s, %s and %s of payload are in %s\n", check.Count(e.Changes, "change"), check.Count(e.Found.Rows, "row"), size(e.Found.Payload), e.Folder)
		}),
	}
	c.Flags().StringVar(&folder, "to", "", "folder that is made, and must not exist")
	c.Flags().StringVar(&at, "location", "", "ask this location alone")
	return c
}

func (t *tool) exportLost(ctx context.Context, name geo.Account, at, folder string) (lostExported, error) {
	out := lostExported{Folder: folder, Found: exported{Folder: folder}}
	if folder == "" {
		return out, command.Wrong(errors.New("lost export needs --to FOLDER"))
	}
	r, err := t.lostOf(ctx, name, at)
	if err != nil {
		return out, err
	}
	if len(r.Silent) > 0 {
		return out, fmt.Errorf("%s does not answer: %s; --location names one that does", r.Silent[0].Location, r.Silent[0].Reason)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return out, err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return out, err
	}
	if err := os.WriteFile(filepath.Join(folder, "changes.json"), append(b, '\n'), 0o600); err != nil {
		return out, err
	}
	for _, l := range r.Locations {
		out.Changes += len(l.Changes)
		found, err := t.exportFound(ctx, l.Location, name, filepath.Join(folder, string(l.Location)))
		if err != nil {
			return out, err
		}
		out.Found.Rows += found.Rows
		out.Found.Payload += found.Payload
	}
	return out, nil
}

func (t *tool) lostDrop() *cobra.Command {
	return t.dropCommand("Delete the report of an account's lost changes, for good",
		`drop deletes what a location has kept of the lost changes of an account. What the rows held
stays in its lost-and-found until fork found drop. Nothing brings the report back: export it
before. Without --yes it counts the entries, and changes nothing.`,
		"antipodectl lost drop LOCATION ACCOUNT", "antipodectl lost export ACCOUNT --to lost", t.dropLost)
}

// dropLost counts the lost changes of an account and what is claimed about them, and deletes them with yes.
func (t *tool) dropLost(ctx context.Context, l geo.Location, account geo.Account, yes bool) (out dropped, err error) {
	kept, err := t.lostAt(ctx, account, l)
	if err != nil {
		return out, err
	}
	out.Entries = len(kept.Claims) + len(kept.Changes)
	for _, c := range kept.Changes {
		out.Bytes += c.Bytes
		out.PayloadBytes += c.PayloadBytes
	}
	for more := yes; more; {
		page, err := t.client.DropLost(ctx, l, admin.DropLost{Account: account})
		if err != nil {
			return out, err
		}
		out.Dropped += page.Dropped
		more = page.More
	}
	return out, nil
}
