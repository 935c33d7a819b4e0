package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// drillTable is the table of a drill, which is deleted afterwards.
const drillTable = "antipodedrill"

// drillAccount is the drill's table through both names. It implements drill.Target: a row is a partition, and each of its
// values an entity.
type drillAccount struct {
	// run is in the names of the partitions, since the lost-change report may have those of another drill.
	run                string
	primary, secondary *aztables.Client
}

// drillTarget makes the drill's table.
func (t *tool) drillTarget(ctx context.Context, name geo.Account) (*drillAccount, error) {
	a, err := t.client.Account(ctx, name)
	if err != nil {
		return nil, err
	}
	keys, err := t.client.Keys(ctx, name)
	if err != nil {
		return nil, err
	}
	cred, err := aztables.NewSharedKeyCredential(string(name), keys.Key1)
	if err != nil {
		return nil, err
	}
	client := func(url string) (*aztables.Client, error) {
		// What fails is to be seen, so nothing is tried again.
		o := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
		s, err := aztables.NewServiceClientWithSharedKey(url, cred, o)
		if err != nil {
			return nil, err
		}
		return s.NewClient(drillTable), nil
	}
	out := &drillAccount{run: strings.ToLower(rand.Text()[:8])}
	for _, e := range a.Endpoints {
		if e.Service != geo.Table.String() {
			continue
		}
		if e.Secondary == "" {
			return nil, fmt.Errorf("account %s is %s: a drill needs one whose secondary can be read", name, a.Redundancy)
		}
		if out.primary, err = client(e.Primary); err == nil {
			out.secondary, err = client(e.Secondary)
		}
		if err != nil {
			return nil, err
		}
	}
	if out.primary == nil {
		return nil, fmt.Errorf("account %s has no endpoint for tables here", name)
	}
	if err := t.createTable(ctx, out.primary); err != nil {
		return nil, fmt.Errorf("the table %s: %w", drillTable, short(err))
	}
	return out, out.fill(ctx)
}

// tableWait is how long a drill waits until the table of one before is deleted: its name rests for 40 s.
const tableWait = 2 * time.Minute

// createTable makes the table of a drill, unless it exists.
func (t *tool) createTable(ctx context.Context, table *aztables.Client) error {
	for began, said := t.mono(), false; ; {
		_, err := table.CreateTable(ctx, nil)
		switch {
		case answered(err, "TableAlreadyExists"):
			return nil
		case !answered(err, "TableBeingDeleted") || t.mono()-began > tableWait:
			return err
		case !said:
			said = true
			_, _ = fmt.Fprintln(t.errOut, "waiting: the table of a drill before is being deleted")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.after(servingPoll):
		}
	}
}

// answered reports whether an error is an answer with a code.
func answered(err error, code string) bool {
	var a *azcore.ResponseError
	return errors.As(err, &a) && a.ErrorCode == code
}

// fill waits until the table can be read through both names: a lost creation of a table would keep the former primary of an
// unplanned failover from being rewound (R22).
func (d *drillAccount) fill(ctx context.Context) error {
	if err := d.Write(ctx, 0, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := d.secondary.GetEntity(ctx, d.partition(0), rowKey(0), nil)
		if err == nil || clock.Wait(ctx, failoverPause) != nil {
			return err
		}
	}
}

// drillRow is an entity of the table.
type drillRow struct {
	PartitionKey, RowKey string
}

func (d *drillAccount) partition(row int) string { return fmt.Sprintf("%s-%d", d.run, row) }

// rowKey names a value.
func rowKey(value uint64) string { return fmt.Sprintf("%012d", value) }

// parse returns the row and the value that a lost change is about, if it is one of this drill.
func (d *drillAccount) parse(c admin.LostChange) (row int, value uint64, ok bool) {
	run, n, _ := strings.Cut(c.Object, "-")
	row, rowErr := strconv.Atoi(n)
	value, valueErr := strconv.ParseUint(c.Row, 10, 64)
	return row, value, c.Service == geo.Table.String() && c.Container == drillTable && run == d.run && rowErr == nil && valueErr == nil
}

// Write implements drill.Target.
func (d *drillAccount) Write(ctx context.Context, row int, value uint64) error {
	b, err := json.Marshal(drillRow{d.partition(row), rowKey(value)})
	if err == nil {
		_, err = d.primary.UpsertEntity(ctx, b, nil)
	}
	return short(err)
}

// Read implements drill.Target: an entity that is not there is an answer, too.
func (d *drillAccount) Read(ctx context.Context, row int, secondary bool) error {
	c := d.primary
	if secondary {
		c = d.secondary
	}
	_, err := c.GetEntity(ctx, d.partition(row), rowKey(1), nil)
	var a *azcore.ResponseError
	if errors.As(err, &a) && a.StatusCode == http.StatusNotFound {
		return nil
	}
	return short(err)
}

// Values implements drill.Target.
func (d *drillAccount) Values(ctx context.Context, row int) (out []uint64, err error) {
	filter, fields := fmt.Sprintf("PartitionKey eq '%s'", d.partition(row)), "PartitionKey,RowKey"
	for p := d.primary.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Select: &fields}); p.More(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, short(err)
		}
		for _, b := range page.Entities {
			var have drillRow
			if err := json.Unmarshal(b, &have); err != nil {
				return nil, err
			}
			value, err := strconv.ParseUint(have.RowKey, 10, 64)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
	}
	return out, nil
}

// short is the status and the code of an answer in place of all of it.
func short(err error) error {
	var a *azcore.ResponseError
	if errors.As(err, &a) {
		return fmt.Errorf("%d %s", a.StatusCode, a.ErrorCode)
	}
	return err
}
