// What pages do besides: show a password, keep what is shown once, send on what only has to be sent on, and tell times where the person is. Nothing needs it;
// what it offers is hidden until it is there.
(function () {
  'use strict';

  function each(selector, f) { document.querySelectorAll(selector).forEach(f); }

  each('[data-reveal]', function (button) {
    var field = document.getElementById(button.dataset.reveal);
    var says = button.firstElementChild;
    var show = says.textContent;
    function hide() {
      field.type = 'password';
      says.textContent = show;
    }
    button.hidden = false;
    button.addEventListener('click', function () {
      if (field.type !== 'password') return hide();
      field.type = 'text';
      says.textContent = button.dataset.hide;
    });
    field.form.addEventListener('submit', hide); // browsers offer to keep it only as a password
  });

  function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    return Promise.reject();
  }

  each('[data-keep]', function (box) {
    var text = box.dataset.keep;
    box.hidden = false;
    box.querySelectorAll('[data-copy]').forEach(function (button) {
      if (!navigator.clipboard) {
        button.hidden = true;
        return;
      }
      var says = button.textContent;
      button.addEventListener('click', function () {
        copy(text).then(function () {
          button.textContent = button.dataset.done;
          setTimeout(function () { button.textContent = says; }, 3000);
        }, function () { button.hidden = true; });
      });
    });
    box.querySelectorAll('[data-download]').forEach(function (button) {
      button.addEventListener('click', function () {
        var link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
        link.download = button.dataset.download;
        link.click();
        setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
      });
    });
  });

  // An answer on its way to an application.
  each('form[data-onward]', function (form) { form.submit(); });

  // In the words of the page, and with the order of day and month that the person is used to.
  var language = document.documentElement.lang;
  if (navigator.language && navigator.language.indexOf(language) === 0) language = navigator.language;

  each('time[datetime]', function (time) {
    var at = new Date(time.dateTime);
    if (isNaN(at)) return;
    try {
      var local = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(at);
      time.title = time.textContent; // in UTC
      time.textContent = local;
    } catch (e) { /* an old browser keeps UTC */ }
  });
})();
