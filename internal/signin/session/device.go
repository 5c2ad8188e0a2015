package session

// MayBeRemembered tells whether the person has just proven a second factor in this session, and nothing else is
// missing.
func (s *InSession) MayBeRemembered() bool {
	return s.user.Data.SecondFactor && s.proof.SecondFactor && s.mayChange() == nil &&
		!s.user.Data.Password.ChangeRequired
}

// Waits tells whether the session has a second factor to prove that the person has.
func (s *InSession) Waits() bool { return s.unproven && s.user.Data.SecondFactor }

// Recognize lets the session act on a device that is remembered.
func (s *InSession) Recognize(device string, source RequestSource) error {
	s.proof.Device, s.proved = device, true
	return record(s.tx, s.user.ID, DeviceRecognized{DeviceID: device, SessionID: s.session.ID, Personal: source})
}

// Remembers records a device that is remembered from now on.
func (s *InSession) Remembers(device string, expires int64, source RequestSource) error {
	return record(s.tx, s.user.ID, DeviceRemembered{DeviceID: device, Expires: expires, Personal: source})
}

// Name is what lists call where a session or a device is.
func (f From) Name() string { return nameOf(f.Source()) }
