package replica

import (
	"fmt"
	"log/slog"
)

// raftLogger logs the warnings and errors of Raft and drops the rest, since we report elections
// and appends in our own events.
type raftLogger struct{ l *slog.Logger }

func (raftLogger) Debug(...any)          {}
func (raftLogger) Debugf(string, ...any) {}
func (raftLogger) Info(...any)           {}
func (raftLogger) Infof(string, ...any)  {}

func (r raftLogger) Warning(v ...any)            { r.l.Warn("raft", "detail", fmt.Sprint(v...)) }
func (r raftLogger) Warningf(f string, v ...any) { r.l.Warn("raft", "detail", fmt.Sprintf(f, v...)) }
func (r raftLogger) Error(v ...any)              { r.l.Error("raft", "detail", fmt.Sprint(v...)) }
func (r raftLogger) Errorf(f string, v ...any)   { r.l.Error("raft", "detail", fmt.Sprintf(f, v...)) }

func (r raftLogger) Fatal(v ...any)            { r.Panic(v...) }
func (r raftLogger) Fatalf(f string, v ...any) { r.Panicf(f, v...) }
func (raftLogger) Panic(v ...any)              { panic("raft: " + fmt.Sprint(v...)) }
func (raftLogger) Panicf(f string, v ...any)   { panic("raft: " + fmt.Sprintf(f, v...)) }
