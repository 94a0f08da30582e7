struct ProbeTarget {
    /// The index of the silent server that connections prefer.
    let preferred: Int
    /// The number of servers probed since it became silent, including this one.
    let distance: Int

    /// The server's index.
    var serverIndex: Int { preferred + distance }

    /// Returns true if the probe has the short time limit, so that the next servers are probed soon.
    ///
    /// It then goes to the silent server: another may be behind its address by now. Every fourth such probe has the
    /// full limit, for slow networks.
    func isShort(among count: Int) -> Bool {
        count > 1 && distance.isMultiple(of: count) && !distance.isMultiple(of: 4 * count)
    }
}
