"""English words that a dictionary of names must be careful with.

*Function words* are never a mention, even where a store has a concept of that name (``NO``,
``was``). *Common words* with odd capitals are mentions only when written as the name is: ``CAT``
the enzyme is not the animal, ``cAMP`` no place to sleep; a plain ``Skin`` is skin in any case.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a about above after again against all almost alone along also although always am among an
    and another any anyone anything are around as at away be became because been before being
    below between both but by can cannot could did do does doing done down during each either
    else enough etc even ever every everyone everything few for from further had has have having
    he hence her here hers herself him himself his how however i if in indeed into is it its
    itself just least less like made many may me might mine more most much must my myself near
    neither never next no nobody none nor nos not nothing now of off often on once one only onto
    or other others our ours ourselves out over own per perhaps quite rather really same several
    shall she should since so some someone something still such than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to
    together too toward towards two under until up upon us very via was we well were what
    whatever when where whether which while who whoever whole whom whose why will with within
    without would yet you your yours yourself yourselves
    """.split()
)

COMMON_WORDS = frozenset(
    """
    act acts add age aged aim aims aid aids air animal ant anti arc area arm art ask ate atom
    back bad bag ball band bar base bat bear beat bed best better bid big bin bird bit black blue
    boat body book born box boy brain bring bus buy call came camp cap car card care case cat
    cell center chap chart check chip chose city clam class clear clip clock close coal coat cod
    code cold come cope copy cost crash cream cup cut dad dam dark data date day days deal deep
    den dig dim dip dog door dot draw dream drive drop drug due ear early east easy eat edge eel
    egg end era evening eye face fact fail fall family far farm fast fat fed feel feet fell felt
    fig file fill find fine fire fish fit five flag flat flu fly foot form found four fox free
    front full fun gain game gap gas gate gave gel gene get gift girl give goal gold good got gray
    great green group grow gun half ham hand hard harm hat head heart heat held help hen high
    hill hip hit hold home hop hot hour house huge human ice idea impact ink iron job join joint
    jump keep key kid kind king kit knee know lab lack lady lake lamp land large last late law
    lay lead leaf learn leg lens let level lid life light lime line link lip list live load lob
    long look loss lost lot love low mad main make male man map mark mask mass mat match mean
    meet men mice mid mild mile milk mill mind mint mix mode moderate mole month mood moon mouse
    move mum mute name nap neck need net new news nice night nine node normal nose note nut oak
    obese oil old open order pack page pain pair palm pan park part pass past patch path patient
    patients pattern pay pear peel peg pen pet phone pick pig pill pin pit place plan plant play
    plot point pole poll pool poor port post pot power press prior public pull pump pure push put
    race rack rain ran range rap rare rash rat rate raw reach read real recall red rest rice rich
    ride right ring rise risk road rob rock rod role roof room root rose row run sac sad safe
    said salt sand sat save saw say scale school sea seal seat see seed seem seen self sell send
    sense sent set seven sex ship shop short show side sign simple sit site six size skin sleep
    slow small snail soft soil son soon sort speed spot stage star start state stay step stop
    study sum sun swan table tag take talk tall tank tap task tax tea team tell ten term test
    text tide tie time tip tired today toe told tone took tool top town track trap tree trend
    trial tube type unit use used van view visit wait walk wall want war warm wash waste water
    wave way week weight west wet white wide wife win wind wish woman word work world worse year
    yes young zone
    """.split()
)
