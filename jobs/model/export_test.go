package model

import "zorilla/jobs/internal/core"

// Core is what tests look into.
func (m *Model) Core() *core.Core { return m.core }

// Writing reports whether events are on their way to the journal.
func (m *Model) Writing() bool { return len(m.writing) > 0 }

// Asking reports whether answers are awaited.
func (m *Model) Asking() bool { return len(m.asked) > 0 }

// ReportSize is how much output is in one report at most.
const ReportSize = modelReport
