/// Somebody who gathers work during a turn of a loop and does it once at the turn's end.
public protocol IterationObserver: AnyObject {
    /// Whether it is going to be told at the end of this turn. Kept by the loop; begins as `false`.
    var isIterationEndRequested: Bool { get set }

    /// Called on the loop's thread after the turn's handlers and jobs.
    func iterationEnded()
}
