// passport-openidconnect, as its README sets it up.
import express from 'express';
import session from 'express-session';
import passport from 'passport';
import OpenIDConnectStrategy from 'passport-openidconnect';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, BASE, PORT } = process.env;
passport.use(
  new OpenIDConnectStrategy(
    {
      issuer: ISSUER,
      authorizationURL: `${ISSUER}/oauth/authorize`,
      tokenURL: `${ISSUER}/oauth/token`,
      userInfoURL: `${ISSUER}/oauth/userinfo`,
      clientID: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      callbackURL: `${BASE}/callback`,
      scope: ['profile', 'email'],
    },
    (issuer, profile, done) => done(null, profile),
  ),
);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
app.use(session({ secret: 'a text that nobody else knows', resave: false, saveUninitialized: false }));
app.use(passport.session());
app.get('/login', passport.authenticate('openidconnect'));
app.get('/callback', passport.authenticate('openidconnect', { failureRedirect: '/failed', failureMessage: true }), (req, res) => res.redirect('/me'));
app.get('/failed', (req, res) => res.status(401).json(req.session.messages));
app.get('/me', (req, res) => res.json(req.user ? { name: req.user.displayName, email: req.user.emails?.[0]?.value } : null));
app.listen(PORT, '127.0.0.1', () => console.log('listening'));
