package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) accountCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "account",
		Short: "Create, change, list and show accounts",
		Example: `  antipodectl account create pictures --location southcentralus
  antipodectl account show pictures`,
	})
	c.AddCommand(t.accountCreate(), t.accountUpdate(), t.accountRebuild(), t.accountRate(), t.accountList(), t.accountShow(), t.accountKeys(), t.accountReservations(), t.accountFree())
	return c
}

func (t *tool) accountCreate() *cobra.Command {
	var in admin.NewAccount
	var location string
	c := &cobra.Command{
		Use:   "create NAME --location LOCATION",
		Short: "Make an account",
		Long: `create makes an account. LOCATION becomes its primary, the other location its secondary.
Keys that are not given are made by the server. It returns when both locations serve the
account; a name is unique across them, whatever the redundancy:

  RA-GRS  copied to the secondary, which clients can read (the default)
  GRS     copied to the secondary, which clients cannot read
  LRS     not copied: there is no secondary`,
		Example: `  antipodectl account create pictures --location northcentralus
  antipodectl account create scratch --location northcentralus --redundancy LRS
  antipodectl account create backwards --location southcentralus --key1 "$(head -c 64 /dev/urandom | base64 -w 0)"`,
		Args: exactly("NAME"),
	}
	c.RunE = answer(t, func(ctx context.Context, args []string) (admin.AccountInfo, error) {
		if location == "" {
			return admin.AccountInfo{}, command.Wrong(fmt.Errorf("%s needs --location LOCATION, which becomes the primary", c.CommandPath()))
		}
		in.Name, in.Location = geo.Account(args[0]), geo.Location(location)
		return t.client.CreateAccount(ctx, in)
	}, func(w io.Writer, a admin.AccountInfo) {
		_, _ = fmt.Fprintf(w, "created account %s: %s, primary %s, secondary %s\n",
			a.Name, a.Redundancy, a.Primary, orNone(string(a.Secondary)))
		_, _ = fmt.Fprintf(w, "its connection string: antipodectl account show %s\n", a.Name)
	})
	c.Flags().StringVar(&location, "location", "", "`LOCATION` that becomes the primary")
	c.Flags().StringVar(&in.Redundancy, "redundancy", "", "`REDUNDANCY`: LRS, GRS or RA-GRS")
	c.Flags().StringVar(&in.Key1, "key1", "", "first `KEY`, in base64, of 16 bytes at least")
	c.Flags().StringVar(&in.Key2, "key2", "", "second `KEY`, in base64, of 16 bytes at least")
	return c
}

func (t *tool) accountList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the accounts",
		Example: `  antipodectl account list`,
		Args:    exactly(),
		RunE: answer(t, func(ctx context.Context, _ []string) (admin.AccountList, error) {
			all, err := t.client.Accounts(ctx)
			var waiting []*admin.Account
			for i := range all {
				waiting = append(waiting, &all[i].Account)
			}
			t.addWaits(ctx, waiting...)
			return admin.AccountList{Accounts: all}, err
		}, func(w io.Writer, l admin.AccountList) {
			rows := [][]string{{"ACCOUNT", "REDUNDANCY", "PRIMARY", "SECONDARY", "EPOCH"}}
			for _, a := range l.Accounts {
				rows = append(rows, []string{
					string(a.Name), a.Redundancy, string(a.Primary), orNone(string(a.Secondary)), a.Epoch.String(),
				})
			}
			table(w, rows)
			under := make([]admin.Account, 0, len(l.Accounts))
			for _, a := range l.Accounts {
				under = append(under, a.Account)
			}
			writeOperations(w, under, len(under))
		}),
	}
}

// writeOperations writes what is under way for accounts, for the first of them, and which of them have no primary, after a list
// of them; nothing for none.
func writeOperations(w io.Writer, accounts []admin.Account, most int) {
	shown, more := 0, 0
	for _, a := range accounts {
		switch {
		case a.Operation == "":
		case shown == most:
			more++
		default:
			if shown == 0 {
				_, _ = fmt.Fprintln(w, "\nUNDER WAY")
			}
			shown++
			_, _ = fmt.Fprintln(w, underWay(a)) // No table: a terminal wraps this at words.
		}
	}
	if more > 0 {
		_, _ = fmt.Fprintf(w, "and %d more: antipodectl account list\n", more)
	}
	if i := slices.IndexFunc(accounts, func(a admin.Account) bool { return check.WayOut(a) != "" }); i >= 0 { // The others differ by their name alone.
		_, _ = fmt.Fprintf(w, "next, for %s: %s\n", accounts[i].Name, check.WayOut(accounts[i]))
	}
	for _, a := range accounts {
		if a.WithoutPrimary != "" {
			_, _ = fmt.Fprintf(w, "\naccount %s: %s\n", a.Name, a.WithoutPrimary)
		}
	}
}

// underWay is a line about the operation of an account.
func underWay(a admin.Account) string {
	line := fmt.Sprintf("%s: %s", a.Name, check.UnderWay(a))
	if a.FailoverPhase != "" {
		line += " (" + a.FailoverPhase + ")"
	}
	if a.OperationWaits != "" {
		line += "; it cannot go on now: " + check.OneLine(a.OperationWaits)
	}
	return line
}

// shown is the JSON of account show.
type shown struct {
	admin.AccountInfo
	ConnectionString string `json:"connection_string"`
	// Geo is absent where the server does not answer it. The status of a location that the port does not ask is admin.LocationUnknown.
	Geo *admin.GeoReplication `json:"geo,omitempty"`
	// WritesRefused is why the primary, which answers, refuses writes; empty where it is not known to.
	WritesRefused string `json:"writes_refused,omitempty"`
	// TwoPrimaries is the other location that takes writes, too; empty where none is known to.
	TwoPrimaries string `json:"two_primaries,omitempty"`
}

func (t *tool) accountShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show an account, its endpoints and its connection string",
		Long: `show prints an account with its endpoints and the connection string that the
official SDKs and tools take. The string holds the first key: treat it as a secret.`,
		Example: `  antipodectl account show devstoreaccount1
  export AZURE_STORAGE_CONNECTION_STRING="$(antipodectl account show devstoreaccount1 -o json |
    jq -r .connection_string)"`,
		Args: exactly("NAME"),
		RunE: answer(t, func(ctx context.Context, args []string) (shown, error) {
			a, err := t.client.Account(ctx, geo.Account(args[0]))
			if err != nil {
				return shown{}, err
			}
			k, err := t.client.Keys(ctx, a.Name)
			out := shown{AccountInfo: a, ConnectionString: admin.ConnectionString(a, k)}
			if err != nil {
				return out, err
			}
			t.addReplication(ctx, &out)
			return out, nil
		}, writeAccount),
	}
}

// addReplication adds to an account what is known of its replication. Questions that wait for a location that is
// paused, or for streams that stand, are asked side by side.
func (t *tool) addReplication(ctx context.Context, out *shown) {
	var asked sync.WaitGroup
	var s admin.Status
	var g admin.GeoReplication
	var unasked, none error
	asked.Go(func() { s, unasked = t.client.Status(ctx) })
	asked.Go(func() { g, none = t.client.GeoReplication(ctx, out.Name) })
	asked.Wait()
	if unasked == nil {
		waitsOf(s, &out.Account)
		out.WritesRefused, out.TwoPrimaries = check.RefusesWrites(s, out.Name), check.OtherTakesWrites(s, out.Name)
	}
	if none != nil {
		return
	}
	if out.Geo = &g; g.Stats == nil {
		return
	}
	if unasked == nil {
		for _, hidden := range check.NotShown(s) {
			hide(&g.StatusOfPrimary, g.Primary == hidden)
			hide(&g.StatusOfSecondary, g.Secondary == hidden)
		}
	}
	if g.Stats.CanPlannedFailover { // Both locations answer, and a plan knows more.
		g.Stats.CanPlannedFailover = t.movable(ctx, out.AccountInfo, s, unasked)
	}
}

// writeWrites writes why writes of an account are refused, and that another location takes them too; nothing where both are empty.
func writeWrites(w io.Writer, of ...string) {
	for _, line := range of {
		if line != "" {
			_, _ = fmt.Fprintf(w, "writes: %s\n", line)
		}
	}
}

// hide has a status of a location be unknown, which the port that answers takes for unavailable since it does not ask it.
func hide(status *string, hidden bool) {
	if hidden && *status == admin.LocationUnavailable {
		*status = admin.LocationUnknown
	}
}

func writeAccount(w io.Writer, a shown) {
	table(w, [][]string{
		{"account", string(a.Name)},
		{"redundancy", a.Redundancy},
		{"primary", string(a.Primary)},
		{"secondary", orNone(string(a.Secondary))},
		{"epoch", a.Epoch.String()},
	})
	if a.WithoutPrimary != "" {
		_, _ = fmt.Fprintf(w, "without a primary: %s\n", a.WithoutPrimary)
	}
	if a.Geo != nil {
		writeGeo(w, *a.Geo)
	}
	writeWrites(w, a.WritesRefused, a.TwoPrimaries)
	if a.WhenLate != "" {
		_, _ = fmt.Fprintf(w, "writes while changes are late: %s\n", a.WhenLate)
	}
	if a.Operation != "" {
		_, _ = fmt.Fprintf(w, "under way: %s\n", check.UnderWay(a.Account))
	}
	writeWaiting(w, a.Account)
	if a.Copied != nil {
		writeCopied(w, a.Copied)
	}
	_, _ = fmt.Fprintln(w)
	rows := [][]string{{"SERVICE", "PRIMARY ENDPOINT", "SECONDARY ENDPOINT"}}
	for _, e := range a.Endpoints {
		rows = append(rows, []string{e.Service, e.Primary, orNone(e.Secondary)})
	}
	table(w, rows)
	_, _ = fmt.Fprintf(w, "\nconnection string:\n%s\n", a.ConnectionString)
}

// silent reports whether an account has an operation of which the process that answered does not know why it cannot go on: only
// the process that carries it out does, and a status asks all.
func silent(a *admin.Account) bool { return a.Operation != "" && a.OperationWaits == "" }

// addWaits adds to accounts why their operations cannot go on, where that is not known yet.
func (t *tool) addWaits(ctx context.Context, accounts ...*admin.Account) {
	if !slices.ContainsFunc(accounts, silent) {
		return
	}
	if s, err := t.client.Status(ctx); err == nil { // Else it stays unknown.
		waitsOf(s, accounts...)
	}
}

// waitsOf adds to accounts why their operations cannot go on, as a status has it.
func waitsOf(s admin.Status, accounts ...*admin.Account) {
	of := map[geo.Account]admin.Account{}
	for _, a := range s.Accounts {
		of[a.Name] = a.Account
	}
	for _, a := range accounts {
		if has := of[a.Name]; silent(a) && has.Epoch == a.Epoch && has.Operation == a.Operation {
			a.OperationWaits = has.OperationWaits
		}
	}
}

// writeWaiting writes why the operation of an account cannot go on, and what to do.
func writeWaiting(w io.Writer, a admin.Account) {
	if a.OperationWaits != "" {
		_, _ = fmt.Fprintf(w, "it cannot go on now: %s\n", check.OneLine(a.OperationWaits))
	}
	if out := check.WayOut(a); out != "" {
		_, _ = fmt.Fprintf(w, "next: %s\n", out)
	}
}

func (t *tool) accountKeys() *cobra.Command {
	return &cobra.Command{
		Use:     "keys NAME",
		Short:   "Print an account's keys",
		Long:    `keys prints both keys of an account, in base64. Each of them gives full access to the account.`,
		Example: `  antipodectl account keys devstoreaccount1`,
		Args:    exactly("NAME"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Keys, error) {
			return t.client.Keys(ctx, geo.Account(args[0]))
		}, func(w io.Writer, k admin.Keys) {
			table(w, [][]string{{"key1", k.Key1}, {"key2", k.Key2}})
		}),
	}
}

// writeGeo writes the geo-replication of an account.
func writeGeo(w io.Writer, g admin.GeoReplication) {
	status := func(l geo.Location, shown string) string {
		if shown == admin.LocationUnknown {
			return "not known: " + unseen(l)
		}
		return shown
	}
	_, _ = fmt.Fprintf(w, "status of the primary: %s\n", status(g.Primary, g.StatusOfPrimary))
	if !g.LastGeoFailoverTime.IsZero() {
		_, _ = fmt.Fprintf(w, "last failover: %s\n", g.LastGeoFailoverTime.UTC().Format(lossTime))
	}
	s := g.Stats
	if s == nil {
		return
	}
	last := "not known"
	if !s.LastSyncTime.IsZero() {
		last = s.LastSyncTime.UTC().Format(lossTime)
	}
	can := map[bool]string{true: "possible", false: "not possible now"}
	_, _ = fmt.Fprintf(w, "status of the secondary: %s, replication %s, last sync time %s\n", status(g.Secondary, g.StatusOfSecondary), s.Status, last)
	if slices.Contains([]string{g.StatusOfPrimary, g.StatusOfSecondary}, admin.LocationUnknown) {
		return // Which failover is possible goes by both.
	}
	_, _ = fmt.Fprintf(w, "failover: planned %s, unplanned %s; then %s\n", can[s.CanPlannedFailover], can[s.CanFailover], s.PostFailoverRedundancy)
}
