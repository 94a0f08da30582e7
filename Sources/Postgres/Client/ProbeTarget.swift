/// A server that is looked at.
struct ProbeTarget {
    /// The one that connections go to, and that is silent.
    let preferred: Int
    /// How many have been looked at since it is silent, with this one.
    let distance: Int

    /// Its place among the servers.
    var rotation: Int { preferred + distance }

    /// Whether the look is a short one, so that others are soon looked at again. It goes to the server that is silent: another
    /// may be behind its address by now. Every fourth time it may take as long as where the network is slow.
    func isShort(among count: Int) -> Bool {
        count > 1 && distance.isMultiple(of: count) && !distance.isMultiple(of: 4 * count)
    }
}
