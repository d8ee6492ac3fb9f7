package nstorm.hook;

import java.util.List;

/** Everything one kind of JVM needs from Storm; its code may load no class of Storm. */
public interface HookSet {

    /** The methods to weave into, each by an advice that loads no class of Storm either. */
    List<Advised> advised();

    /** Fields and methods reached by reflection; what the bytecode links to is found without being named. */
    List<Symbol> reflected();

    /** Final fields that the hooks write: each loads without its modifier, for a later Java refuses such writes. */
    default List<Symbol> written() {
        return List.of();
    }

    /** The methods whose behaviour the hooks rely on and that they are not woven into; a class alone means all its methods. */
    default List<Symbol> reliedOn() {
        return List.of();
    }
}
