package operator

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
)

// records are what locations have of an account, as far as they answer.
type records map[geo.Location]wire.Account

// recordsOf are the records of an account. answered are what each location has answered with, in the order of the locations.
func (b *Backend) recordsOf(answered []answer[wire.Account]) records {
	out := records{}
	for i, a := range answered {
		if a.err == nil {
			out[b.o.Locations[i].Name()] = a.value
		}
	}
	return out
}

// allRecords are the records of all accounts. answered are those that each location has answered with, in the order of the
// locations.
func (b *Backend) allRecords(answered [][]wire.Account) map[geo.Account]records {
	out := map[geo.Account]records{}
	for i, l := range b.o.Locations {
		for _, a := range answered[i] {
			if out[a.Name] == nil {
				out[a.Name] = records{}
			}
			out[a.Name][l.Name()] = a
		}
	}
	return out
}

// withoutPrimary returns the latest record of an account that has no primary, and why: see wire.WithoutPrimary. The records were
// not read at one time, and a failover may have come between. So the location that should be the primary is asked once more.
func (b *Backend) withoutPrimary(ctx context.Context, of records) (latest wire.Account, is bool) {
	why, latest := wire.WithoutPrimary(of)
	if why == "" {
		return latest, false
	}
	l, err := b.find(latest.Primary)
	if err != nil {
		return latest, false
	}
	own, err := accountOf(ctx, l, latest.Name)
	if err != nil || geo.Epoch(own.Epoch).Compare(geo.Epoch(latest.Epoch)) >= 0 {
		return latest, false
	}
	latest.WithoutPrimary = why
	return latest, true
}

// nameUnheld marks the accounts of a status that have no primary. Such an account is shown as its latest record has it.
func (b *Backend) nameUnheld(ctx context.Context, list []wire.AccountStatus, answers []answer[wire.Status]) {
	answered := make([][]wire.Account, len(answers))
	for i, a := range answers {
		for _, of := range a.value.Accounts {
			answered[i] = append(answered[i], of.Account)
		}
	}
	of := b.allRecords(answered)
	for i := range list {
		if latest, is := b.withoutPrimary(ctx, of[list[i].Name]); is {
			list[i].Account = latest
		}
	}
}

// explainUnheld puts first, in what holds an account's services back, that it has no primary.
func (b *Backend) explainUnheld(ctx context.Context, all wire.Flows, out *wire.Why) {
	of := records{}
	for _, f := range all.Flows {
		of[f.Location] = f.Account
	}
	latest, is := b.withoutPrimary(ctx, of)
	if !is {
		return
	}
	for i := range out.Services {
		s := &out.Services[i]
		s.OK = false
		s.Causes = append([]wire.Cause{{Stage: wire.StageStopped, Location: latest.Primary, Detail: latest.WithoutPrimary}}, s.Causes...)
	}
}
