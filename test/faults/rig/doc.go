// Package rig runs the deployment of package cluster as child processes of a test, with a
// proxy between every two of them: it kills, pauses and starts processes, and cuts, holds
// back and slows what is between them.
//
// Invariant: a process ends only because the rig ended it; see [Rig.Check].
package rig
