package agent

import "zorilla/jobs/internal/calendar"

// Booked lists what is booked at this node, alternatives too.
func (s *Service) Booked() (list []calendar.Booking) {
	s.loop.Call(func() { list = s.core.Claims.Calendar.Bookings() })
	return list
}
