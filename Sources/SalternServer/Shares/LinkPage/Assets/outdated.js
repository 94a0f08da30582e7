// Shows a notice in browsers without modules, which cannot open shares.
document.getElementById("outdated").hidden = false;
document.querySelector("main").setAttribute("data-state", "outdated");
