// Asks the browser for a passkey. Pages say what they want in data attributes; the answer goes back with the form around it.
(function () {
  'use strict';

  function bytes(text) {
    var binary = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
    var result = new Uint8Array(binary.length);
    for (var i = 0; i < binary.length; i++) result[i] = binary.charCodeAt(i);
    return result.buffer;
  }

  function text(buffer) {
    var binary = '';
    new Uint8Array(buffer).forEach(function (b) { binary += String.fromCharCode(b); });
    return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  }

  // The options come as JSON, in which everything binary is base64url.
  function read(options) {
    options.challenge = bytes(options.challenge);
    if (options.user) options.user.id = bytes(options.user.id);
    (options.allowCredentials || []).concat(options.excludeCredentials || []).forEach(function (c) { c.id = bytes(c.id); });
    return options;
  }

  function write(credential) {
    var response = {};
    ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'].forEach(function (name) {
      if (credential.response[name]) response[name] = text(credential.response[name]);
    });
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    return JSON.stringify({
      id: credential.id,
      rawId: text(credential.rawId),
      type: credential.type,
      authenticatorAttachment: credential.authenticatorAttachment || undefined,
      clientExtensionResults: credential.getClientExtensionResults(),
      response: response
    });
  }

  function setUp(box) {
    var form = box.closest('form');
    var button = box.querySelector('button');
    var waiting = null; // what is under way, so that it can be given up for something else

    function tell(when) {
      box.querySelectorAll('[data-when]').forEach(function (p) { p.hidden = p.dataset.when !== when; });
    }

    if (!window.PublicKeyCredential || !navigator.credentials) {
      tell('unsupported');
      return;
    }

    function ask(mediation) {
      if (waiting) waiting.abort();
      var mine = waiting = new AbortController();
      return Promise.resolve().then(function () {
        var options = JSON.parse(box.dataset.options);
        var request = { publicKey: read(options.publicKey || options), signal: mine.signal };
        if (mediation) request.mediation = mediation;
        return navigator.credentials[box.dataset.passkey](request);
      }).then(function (credential) {
        box.querySelector('input[name=credential]').value = write(credential);
        form.submit();
      }).catch(function () {
        if (waiting !== mine) return; // given up for another one
        waiting = null;
        button.disabled = false;
        if (!mediation) tell('failed');
      });
    }

    button.disabled = false;
    button.addEventListener('click', function () {
      tell('');
      button.disabled = true;
      ask();
    });
    // Coming back to the page with the browser's button must find it ready.
    window.addEventListener('pageshow', function () { button.disabled = false; });

    if ('conditional' in box.dataset && PublicKeyCredential.isConditionalMediationAvailable) {
      PublicKeyCredential.isConditionalMediationAvailable().then(function (available) {
        if (available && !waiting) ask('conditional');
      });
    }
  }

  // Tells the browser which passkeys count here and under which names, by the methods of PublicKeyCredential that it knows of those.
  function signal(box) {
    Promise.resolve().then(function () {
      var says = JSON.parse(box.dataset.signal);
      return Promise.all(Object.keys(says).map(function (name) {
        if (window.PublicKeyCredential && name.indexOf('signal') === 0 && PublicKeyCredential[name]) return PublicKeyCredential[name](says[name]);
      }));
    }).catch(function () { /* it is a favour to the person */ });
  }

  document.querySelectorAll('[data-passkey]').forEach(setUp);
  document.querySelectorAll('[data-signal]').forEach(signal);
})();
