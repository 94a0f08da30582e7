// For browsers that know no modules, and so cannot open anything: says so.
document.getElementById("outdated").hidden = false;
document.querySelector("main").setAttribute("data-state", "outdated");
