// openid-client, as its README sets it up: an issuer, an id, a secret.
import express from 'express';
import session from 'express-session';
import * as client from 'openid-client';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, BASE, PORT } = process.env;
const insecure = { execute: [client.allowInsecureRequests] }; // the server of the test has no certificate
const config = await client.discovery(new URL(ISSUER), CLIENT_ID, CLIENT_SECRET, undefined, insecure);

const app = express();
app.use(session({ secret: 'a text that nobody else knows', resave: false, saveUninitialized: false }));
app.get('/login', async (req, res) => {
  req.session.verifier = client.randomPKCECodeVerifier();
  const to = client.buildAuthorizationUrl(config, {
    redirect_uri: `${BASE}/callback`,
    scope: 'openid profile email',
    code_challenge: await client.calculatePKCECodeChallenge(req.session.verifier),
    code_challenge_method: 'S256',
  });
  res.redirect(to.href);
});
app.get('/callback', async (req, res) => {
  try {
    const tokens = await client.authorizationCodeGrant(config, new URL(req.originalUrl, BASE), { pkceCodeVerifier: req.session.verifier });
    req.session.user = tokens.claims();
    res.redirect('/me');
  } catch (e) {
    res.status(401).json({ error: e.error, error_description: e.error_description, message: e.message });
  }
});
app.get('/me', (req, res) => res.json(req.session.user ?? null));
app.listen(PORT, '127.0.0.1', () => console.log('listening'));
