package sim

import (
	"bytes"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/primary"
	"antipode/secondary"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// wireCommands are all commands that nodes submit to each other: those of server/node.
func wireCommands() ranges.Commands {
	all := ranges.Commands{}
	catalog := func() *ranges.Range { return new(ranges.Range) }
	for _, from := range []ranges.Commands{ranges.OwnCommands(), primary.Commands(), directory.Commands(), secondary.Commands(catalog)} {
		maps.Copy(all, from)
	}
	return all
}

// What seeds have in common: an epoch, a stream, a head, and an encoded gate of an account after its role.
const (
	seedEpoch  = `{"Number":3,"Location":"north"}`
	seedStream = `{"Account":"acct","Epoch":` + seedEpoch + `,"Range":4,"Lane":7}`
	seedHead   = `{"Seq":5,"Hash":6}`
	seedNorth  = "\x03\x00\x00\x00\x00\x00\x00\x00\x05north"
	seedTaken  = "\x07\x04acct\x01\x01\x07" + seedNorth + "\x02"
	seedWiped  = "\x00\x04acct\x01\x00\x00" + seedNorth
	seedSet    = `"set":"BwRhY2N0AQIFAwAAAAAAAAAFbm9ydGgC"`
	seedMove   = `{"v":1,"from":"north","to":"south","unplanned":true,"phase":"moving","begun":2,"within":3,"round":4,"after":"acct"}`
	seedFork   = `{"v":1,"epoch":3,"location":"north","range":4,"closed":5,"wall":6}`
)

// commandSeeds has an encoded command of each kind as a node of today sends it, with all that it carries: nodes of two
// versions exchange commands, so a change here is a change of what is on the wire.
func commandSeeds(t require.TestingT) map[string]string {
	st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 3, Location: "north"}, Range: 4, Lane: 7}
	p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p"}
	rec, err := change.AppendRecord(nil, &change.Record{
		Range: st.Range, Service: p.Service, Account: p.Account, Lane: p.Lane(), Seq: 1, CommitTime: 10, Epoch: st.Epoch,
		Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
	})
	require.NoError(t, err)
	batch := append(binary.AppendUvarint([]byte("\x05north\x04\x01"), uint64(len(rec))), rec...)
	return map[string]string{
		"directory.again":           `{"Account":"acct","Epoch":` + seedEpoch + `,"Lost":true,"Rate":9}`,
		"directory.checkPromotions": `{"names":["acct"],"by":{"WithoutWitness":true,"AcceptPart":true}}`,
		"directory.drained":         "\x01\x04acct\x01\x01\x07" + seedNorth + "\x02",
		"directory.dropStreams":     "acct",
		"directory.endStreams":      "acct",
		"directory.follow":          `{` + seedSet + `,"fork":` + seedFork + `,"after":true}`,
		"directory.forgetStreams":   seedWiped,
		"directory.free":            "acct",
		"directory.freeze":          `{"account":"acct","epoch":` + seedEpoch + `,"turn":1}`,
		"directory.keepLost": `{"account":"acct","by":` + seedEpoch + `,"fork":` + seedFork +
			`,"from":{"stream":3,"seq":1,"row":1}}`,
		"directory.keysOf":        `{"from":"AQ==","end":"Ag==","generations":true}`,
		"directory.lostRows":      `{"account":"acct","by":` + seedEpoch + `,"from":{"change":"AQ==","row":1}}`,
		"directory.openTaken":     seedTaken,
		"directory.probe":         "",
		"directory.raiseLevels":   "\x01\x02\x00\x00\x00\x01\x00\x00\x00",
		"directory.reached":       `{"account":"acct","epoch":` + seedEpoch + `,"heads":[{"range":4,"lane":3,"seq":4,"hash":9}]}`,
		"directory.regain":        `{` + seedSet + `,"wipe":["AQ=="],"open":true}`,
		"directory.rejoin":        "\x07\x04acct\x01\x02\x05" + seedNorth + "\x02",
		"directory.rewound":       seedTaken,
		"directory.salvageRows":   `{"account":"acct","by":` + seedEpoch + `,"start":"AQ==","there":"Ag=="}`,
		"directory.setGate":       seedTaken,
		"directory.setLocation":   `{"of":` + seedMove + `,"to":` + seedMove + `}`,
		"directory.thaw":          `{"account":"acct","epoch":` + seedEpoch + `,"turn":1}`,
		"directory.wipe":          seedWiped,
		"primary.closeGeneration": "\x01key",
		"primary.count":           `{"Account":"acct","Service":4,"From":"AQ=="}`,
		"primary.image": `{"Account":"acct","Service":4,"Epoch":` + seedEpoch +
			`,"Counted":{"Rows":1,"Bytes":2,"Payload":3},"BytesMax":8,"Rows":5,"Ahead":6}`,
		"primary.repair": `{"Account":"acct","Service":4,"Epoch":` + seedEpoch + `,"Keys":["AQI="]}`,
		"primary.take": `{"Stream":` + seedStream + `,"Base":` + seedHead + `,"At":` + seedHead +
			`,"Units":[{"Key":"AQ==","Large":true,"Rows":[{"Key":"AQ==","Value":"Ag=="}]}]}`,
		"ranges.dropFound": `{"Keys":["AQI="]}`,
		"ranges.endSettle": `{"Stream":` + seedStream + `,"Base":` + seedHead + `,"At":9}`,
		"ranges.resume":    string(change.AppendStopPart(nil, st, change.Stop{})),
		"ranges.settle":    `{"Stream":` + seedStream + `,"From":` + seedHead + `,"Above":8,"Settles":true,"Take":true}`,
		"secondary.apply":  string(change.AppendClosed(batch, &change.Closed{Origin: "north", Range: 4, T0: 5, T: 20})),
		"secondary.rebase": `{"Stream":` + seedStream + `,"From":` + seedHead + `,"Record":"AQI="}`,
		"secondary.stop":   string(change.AppendStopPart(nil, st, change.Stop{Reason: change.StopLost, There: geo.Head{Seq: 9, Hash: 7}})),
	}
}

// Every kind of command has a seed, which decodes to a command of that kind, and that to the same bytes.
func TestCommandsEncodeToWhatTheyDecode(t *testing.T) {
	all, seeds := wireCommands(), commandSeeds(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(seeds)))
	for kind, seed := range seeds {
		cmd, err := all[kind]([]byte(seed))
		require.NoError(t, err, kind)
		require.Equal(t, kind, cmd.Kind())
		require.Equal(t, seed, string(cmd.Encode()), kind)
	}
}

// Any bytes are for each decoder of a command either refused, or a command that encodes to bytes which decode and encode
// to themselves. What they allocate is bounded by how many there are. No result that comes back panics.
func FuzzCommands(f *testing.F) {
	all := wireCommands()
	for _, seed := range commandSeeds(f) {
		f.Add([]byte(seed))
	}
	f.Add([]byte("\x05north\x04\x80\x80\x80\x80\x01"))     // A batch of more records than it has.
	f.Add([]byte("\x00\x80\x80\x80\x80\x01acct"))          // An account longer than the command.
	f.Add([]byte("\x80\x80\x80\x80\x01north\x04\x01\x01")) // An origin longer than the batch.
	kinds := slices.Sorted(maps.Keys(all))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range kinds {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cmd, err := all[kind](bytes.Clone(b))
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+1024*len(b)), kind)
			if err != nil {
				continue
			}
			encoded := cmd.Encode()
			again, err := all[kind](bytes.Clone(encoded))
			require.NoError(t, err, kind)
			require.Equal(t, kind, again.Kind())
			require.Equal(t, string(encoded), string(again.Encode()), kind)
			_ = again.DecodeResult(b)
		}
	})
}
